<meetings>
{ for $x in stream("photon1")/photons/photon |det_time diff 10 step 5|
  for $y in stream("photon2")/photons/photon |det_time diff 20 step 10|
  where $x/coord/det/dx = $y/coord/det/dx
  return <met>{ $x/en }{ $y/en }</met> }
</meetings>
