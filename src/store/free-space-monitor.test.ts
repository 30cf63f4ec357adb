import { expect, onTestFinished, test } from 'vitest'
import { FreeSpaceMonitor, type DiskSpace } from './free-space-monitor.ts'

const GIB = 2 ** 30

async function opened(space: DiskSpace) {
  const lines: string[] = []
  const state = { space, nowMs: 0 }
  const note = (_: object, sentence: string): void => void lines.push(sentence)
  const room = await FreeSpaceMonitor.open({
    measure: () => Promise.resolve(state.space),
    log: { warn: note, info: note },
    nowMs: () => state.nowMs,
  })
  onTestFinished(() => room.close())
  /** Whether there is room for responses and for signatures after the next measurement. */
  const found = async (next: DiskSpace): Promise<boolean[]> => {
    state.space = next
    state.nowMs += 2_000
    room.hasRoomFor('responses')
    await new Promise((resolve) => void setImmediate(resolve))
    return [room.hasRoomFor('responses'), room.hasRoomFor('signatures'), room.isOk]
  }
  return { found, lines }
}

test('responses are stored while a tenth of a small disk is free, and signatures while a twentieth is', async () => {
  const { found } = await opened({ free: 10, total: 100 })
  expect(await found({ free: 10, total: 100 })).toEqual([true, true, true])
  expect(await found({ free: 9.9, total: 100 })).toEqual([false, true, false])
  expect(await found({ free: 5, total: 100 })).toEqual([false, true, false])
  expect(await found({ free: 4.9, total: 100 })).toEqual([false, false, false])
})

test('responses are stored while 2 GiB of a large disk are free, and signatures while 1 GiB is', async () => {
  const { found } = await opened({ free: 2 * GIB, total: 1000 * GIB })
  expect(await found({ free: 2 * GIB, total: 1000 * GIB })).toEqual([true, true, true])
  expect(await found({ free: 2 * GIB - 1, total: 1000 * GIB })).toEqual([false, true, false])
  expect(await found({ free: GIB - 1, total: 1000 * GIB })).toEqual([false, false, false])
})

test('the log says once that responses or signatures are not stored for lack of disk space, and once that they are again', async () => {
  const { found, lines } = await opened({ free: 4, total: 100 })
  await found({ free: 4, total: 100 })
  await found({ free: 6, total: 100 })
  await found({ free: 50, total: 100 })
  expect(lines).toEqual([
    'no more responses are kept: the file system of DATA_DIR has little room',
    'no more signatures are kept: the file system of DATA_DIR has little room',
    'signatures are kept again',
    'responses are kept again',
  ])
})
