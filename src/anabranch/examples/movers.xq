(: The stocks whose quote has risen by a tenth or more since last time, the largest rise first:
   query 2 of the history paper. :)
for $q in stream("tickers")//ticker
where $q/quote >= $q/quote#1 * 1.1
order by ($q/quote - $q/quote#1) div $q/quote descending
return <quote>{ $q/name, $q/quote }</quote>
