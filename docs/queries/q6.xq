<photons>
{ for $x in stream("photon1")/photons/photon
    |det_time diff 10 step 5|
  for $y in stream("photon2")/photons/photon
    |det_time diff 20 step 10|
  where $x/en >= $y/en
  return
    <result>
      { $x/en } { $x/det_time }
      { $y/en } { $y/det_time }
    </result> }
</photons>
