import { expect, test, vi } from 'vitest'
import { startMsOfCall, timeOfBatchId } from '../../store/usage-id.ts'
import { callIdOfLine, newBatchId } from './batch.ts'

test('the calls of a batch have the time of its id in theirs, also if a millisecond begins while it is made', () => {
  const later = vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 1)
  const batch = newBatchId('messages')
  later.mockRestore()
  expect(startMsOfCall(callIdOfLine(batch, 1))).toBe(timeOfBatchId(batch.id))
})
