(: The average pressure in the same windows, once somebody measures it: example 2 of the same paper. :)
for $w in stream("sensors")/sensors/reading|ts diff 10|
return <window><from>{ min($w/ts) }</from><p>{ avg($w/p) }</p></window>
