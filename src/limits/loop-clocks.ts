import process from 'node:process'
import type { Clocks } from './overload.ts'

/** The time, and what of it this thread was at work, or its event loop had nothing to do. */
export const LOOP_CLOCKS: Clocks = {
  nowMs: () => performance.now(),
  workedMs() {
    const { user, system } = process.threadCpuUsage()
    return (user + system) / 1_000
  },
  idleMs: () => performance.eventLoopUtilization().idle,
}
