(: All stocks, each with its quote now and what it was before, the newest first. :)
for $q in stream("tickers")//ticker
return <stock>{ $q/name, $q/quote#[23] }</stock>
