-- Light threads on several processors, and exceptions. Code that GHC makes has a stack of its own.
import Control.Concurrent
import Control.Exception
import qualified Data.Map as Map

main :: IO ()
main = do
  results <- newEmptyMVar
  mapM_ (\i -> forkIO (putMVar results $! sum [x * x `mod` 7 | x <- [1 .. 20000 * i]])) [1 .. 5]
  sums <- mapM (const (takeMVar results)) [1 .. 5 :: Int]
  divided <- try (evaluate (1 `div` (length sums - 5))) :: IO (Either ArithException Int)
  print (sum sums :: Int, Map.size (Map.fromList [(k * k `mod` 1009, k) | k <- [1 .. 50000 :: Int]]))
  print divided
