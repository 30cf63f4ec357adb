import { expect, test, vi } from 'vitest'
import { untilAborted } from './until-aborted.ts'

test('what fails after a signal was aborted is no unhandled rejection', async () => {
  const unhandled = vi.fn<() => void>()
  process.on('unhandledRejection', unhandled)
  const gone = AbortSignal.abort(new Error('gone'))
  await expect(untilAborted(Promise.reject(new Error('late')), gone)).rejects.toThrow('gone')
  await new Promise((resolve) => setImmediate(resolve))
  process.off('unhandledRejection', unhandled)
  expect(unhandled).not.toHaveBeenCalled()
})
