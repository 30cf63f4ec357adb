import { setImmediate as nextTurn } from 'node:timers/promises'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { startHelperThreads } from './start-helper-threads.ts'

test('helper threads that are closed before they run log nothing', async () => {
  const lines: string[] = []
  const opened = new AsyncDisposableStack()
  startHelperThreads(opened, pino({ level: 'trace' }, { write: (line) => lines.push(line) }))
  await nextTurn()
  await opened.disposeAsync()
  await nextTurn()
  expect(lines).toEqual([])
})
