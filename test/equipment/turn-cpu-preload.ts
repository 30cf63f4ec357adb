import process from 'node:process'
import { isMainThread } from 'node:worker_threads'

// Loaded into the program under test before all other modules: on SIGUSR2 it reports the maximum CPU time of
// a turn of the event loop since the last report.

/** Shorter turns are measured together. */
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
