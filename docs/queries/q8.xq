<photons>
{ for $x in stream("photon1")/photons/photon
    |det_time diff 15 step 10|
  for $y in stream("photon2")/photons/photon
    |det_time diff 30 step 15|
  where $x/phc >= $y/phc
  return
    <result>
      { $x/en } { $x/det_time }
      { $y/en } { $y/det_time }
    </result> }
</photons>
