import process from 'node:process'
import { isMainThread } from 'node:worker_threads'

// Loaded into the program under test before anything else: at SIGUSR2 it reports how much CPU time a turn of
// the event loop took at most since the last report.

/** Shorter turns are taken together. */
const SAMPLE_MS = 1

if (isMainThread) {
  let most = 0
  let before = process.threadCpuUsage()
  setInterval(() => {
    const { user, system } = process.threadCpuUsage(before)
    before = process.threadCpuUsage()
    most = Math.max(most, (user + system) / 1000)
  }, SAMPLE_MS).unref()
  process.on('SIGUSR2', () => {
    console.error(`CPU milliseconds of a turn: ${most}`)
    most = 0
  })
}
