import type { ChildProcess } from 'node:child_process'

const LISTENS = /^Sluice listens on /m
/** Pauses between two probes, in milliseconds: of a program that prints when it listens, and of any other. */
const [LONG_PAUSE_MS, SHORT_PAUSE_MS] = [500, 20]

/**
 * Waits until it makes sense to probe a started program: it has printed that it listens, it has ended, or
 * some time has passed. Probes at short intervals would take a tenth of the CPU time of a start. `output`
 * returns what this run has printed.
 */
export async function pauseBeforeProbe(child: ChildProcess, output: () => string): Promise<void> {
  const { stdout } = child
  const isSilent = stdout === null || LISTENS.test(output())
  await new Promise<void>((resolve) => {
    const timer = setTimeout(end, isSilent ? SHORT_PAUSE_MS : LONG_PAUSE_MS)
    child.once('exit', end)
    if (!isSilent) stdout.on('data', look)
    function look(): void {
      if (LISTENS.test(output())) end()
    }
    function end(): void {
      clearTimeout(timer)
      child.off('exit', end)
      stdout?.off('data', look)
      resolve()
    }
  })
}
