import { existsSync, readdirSync, readlinkSync } from 'node:fs'
import { afterEach, expect, test, vi } from 'vitest'
import { temporaryFolder } from '../../test/stores/rows.ts'
import type { ContentEntry } from './entries.ts'
import { DAY_MS, dayOf, dayText } from './retention.ts'
import { SqliteContentDatabase } from './sqlite-content-database.ts'

afterEach(() => void vi.useRealTimers())

const NOW_MS = Date.now()

/** An entry that is removed in so many days. */
function entry(days: number): ContentEntry {
  const time = NOW_MS.toString(16).padStart(12, '0')
  const id = `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-${String(days).padStart(12, '0')}`
  const dropDay = dayOf(NOW_MS) + days
  const facts = {
    what: 'full',
    bytes: 1,
    sha256: '',
    lengths: '[]',
    sealed: Buffer.from('x'),
    keyId: `k${days}`,
  }
  const place = { object: '', objectAt: 0, objectBytes: 0 }
  const call = { id, userId: 1, tokenId: 1, startedMs: NOW_MS, expiresMs: NOW_MS + DAY_MS }
  return { ...call, ...facts, ...place, dropDay }
}

const openFiles = (folder: string): string[] =>
  readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      const path = readlinkSync(`/proc/self/fd/${fd}`)
      return path.startsWith(folder) ? [path.slice(folder.length + 1)] : []
    } catch {
      return []
    }
  })

test('the SQLite file of contents that expire on a day is deleted on that day with their keys, and all processes close it', async () => {
  const folder = `${temporaryFolder()}/content`
  const [first, other] = [new SqliteContentDatabase(folder), new SqliteContentDatabase(folder)]
  const [soon, later] = [entry(2), entry(8)]
  await other.write(async (writer) => {
    await writer.addKeys(
      [soon, later].map(({ keyId, dropDay }) => ({
        id: keyId,
        userId: 1,
        day: dayOf(NOW_MS),
        endDay: dropDay,
        cipher: 'sealed',
      })),
    )
    await writer.append([soon, later])
  })
  const fileOf = ({ dropDay }: ContentEntry): string => `${dayText(dropDay)}.db`
  expect(await first.prune(soon.dropDay - 1, 0)).toBe(0)
  expect(openFiles(folder)).toEqual(expect.arrayContaining([fileOf(soon), fileOf(later)]))
  expect(await first.prune(soon.dropDay, 0)).toBe(2)
  expect([soon, later].map((one) => existsSync(`${folder}/${fileOf(one)}`))).toEqual([false, true])
  expect((await first.keys(['k2', 'k8'])).map(({ id }) => id)).toEqual(['k8'])
  vi.useFakeTimers({ toFake: ['Date'], now: soon.dropDay * DAY_MS })
  expect((await other.heads([later.id])).map(({ id }) => id)).toEqual([later.id])
  expect(openFiles(folder).filter((name) => name.includes(dayText(soon.dropDay)))).toEqual([])
  expect(openFiles(folder)).toContain(fileOf(later))
  for (const database of [first, other]) await database.close()
})
