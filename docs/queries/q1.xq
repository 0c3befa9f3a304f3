<photons>
{ for $w in stream("photons")/photons/photon
    [coord/cel/ra >= 120.0 and
     coord/cel/ra <= 138.0 and
     coord/cel/dec >= -49.0 and
     coord/cel/dec <= -40.0]
    |det_time diff 60 step 40|
  let $a := avg($w/en)
  where $a >= 1.3
  return <avg_en> { $a } </avg_en> }
</photons>
