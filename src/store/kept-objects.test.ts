import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { keptEntry } from '../../test/stores/kept.ts'
import { storeWithAccount } from '../../test/stores/rows.ts'
import { objectContentId } from '../domain/kept.ts'
import { KeptStore } from './kept-store.ts'
import { FOLDER_MARK, ObjectFolder } from './object-folder.ts'
import { objectName } from './object-place.ts'
import { pruneExpired } from './prune.ts'

const HOUR_MS = 3_600_000
const MIB = 1_048_576

/** A store of the node `own` with contents in a folder, as after a start. */
async function keptInFolder() {
  const path = mkdtempSync(join(tmpdir(), 'sluice-objects-'))
  onTestFinished(() => rmSync(path, { recursive: true, force: true }))
  const { store: rows } = await storeWithAccount()
  const folder = new ObjectFolder(path)
  const most = (): number => 1_024 * MIB
  const kept = new KeptStore({
    rows,
    objects: { place: () => Promise.resolve(folder), node: 'own' },
    maxBytes: { user: most, cache: most, files: most },
    room: undefined,
  })
  /** What a node that was killed has left of an upload. */
  const leave = async (id: string, node: string, ageMs: number): Promise<string> => {
    const contentId = objectContentId(id)
    const place = { kind: 'file', contentId, part: 0, userId: 2, node } as const
    await rows.write('storeKeptPart', { ...place, nowMs: Date.now() - ageMs })
    await folder.put(objectName(contentId, 0), Buffer.from('left'))
    return `${contentId}.0`
  }
  const objects = (): readonly string[] =>
    readdirSync(path)
      .filter((name) => name !== FOLDER_MARK)
      .toSorted((one, other) => (one < other ? -1 : 1))
  return { rows, kept, leave, objects }
}

test('objects of an expired entry are removed once its row is', async () => {
  const { rows, kept, objects } = await keptInFolder()
  const expiresMs = Date.now() + HOUR_MS
  expect(await kept.write(keptEntry('file', 'file-a', { expiresMs }), [Buffer.alloc(2 * MIB)])).toBe(true)
  expect(await kept.removeObjects()).toBe(0)
  expect(objects()).toHaveLength(2)
  expect(await pruneExpired(rows, 'pruneKept', expiresMs)).toBe(1)
  expect(await kept.removeObjects()).toBe(1)
  expect(objects()).toEqual([])
})

test('of interrupted uploads, those of other nodes are removed an hour later, and own ones at a start', async () => {
  const { kept, leave, objects } = await keptInFolder()
  await leave('a', 'other', HOUR_MS + 1)
  const young = await leave('b', 'other', HOUR_MS / 2)
  const own = await leave('c', 'own', 0)
  expect(await kept.removeObjects()).toBe(1)
  expect(objects()).toEqual([young, own])
  const closing = new AbortController()
  await kept.keepRemovingObjects(closing.signal)
  await expect.poll(objects).toEqual([young])
  closing.abort()
})
