for $o in stream("orders")
where $o.amount >= 1000
return { "customer": $o.customer, "amount": $o.amount }
