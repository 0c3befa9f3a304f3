(: The average temperature of all sensors in windows of 10 seconds: figure 1 of the paper on accents. :)
for $w in stream("sensors")/sensors/reading|ts diff 10|
return <window><from>{ min($w/ts) }</from><t>{ avg($w/t) }</t></window>
