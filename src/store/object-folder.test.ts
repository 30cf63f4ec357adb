import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { ObjectFolder } from './object-folder.ts'
import { newObjectKey, readObject, readObjectPart, sealObject } from './object-place.ts'

const MIB = 1_048_576
const PART = 16_384
const WHOLE = { at: 0, length: MIB }

/** An empty folder for objects, beside which tests have files. */
function emptyFolder(): { readonly path: string; readonly outside: string; readonly objects: ObjectFolder } {
  const root = mkdtempSync(join(tmpdir(), 'sluice-objects-'))
  onTestFinished(() => rmSync(root, { recursive: true, force: true }))
  const path = join(root, 'objects')
  mkdirSync(path)
  return { path, outside: join(root, 'outside'), objects: new ObjectFolder(path) }
}

test('links in the folder are neither read nor written through, and removing one leaves what it names', async () => {
  const { path, outside, objects } = emptyFolder()
  writeFileSync(outside, 'of the system')
  symlinkSync(outside, join(path, 'objects-a.0'))
  expect(await objects.get('objects-a/0', WHOLE)).toBeUndefined()
  await expect(objects.put('objects-a/0', Buffer.from('mine'))).rejects.toThrow('EEXIST')
  await objects.remove('objects-a/0')
  expect(readFileSync(outside, 'utf8')).toBe('of the system')
  await objects.put('objects-a/0', Buffer.from('mine'))
  expect(String(await objects.get('objects-a/0', WHOLE))).toBe('mine')
})

test('an object that does not exist is undefined, and can be removed', async () => {
  const { objects } = emptyFolder()
  expect(await objects.get('objects-a/0', WHOLE)).toBeUndefined()
  await objects.remove('objects-a/0')
})

test('each part of a content is read alone, and only at its place with its key', async () => {
  const { objects } = emptyFolder()
  const bytes = Buffer.from(Array.from({ length: 2 * PART + 5 }, (_, at) => (at * 7919) % 251))
  const content = { contentId: 'objects-a', objectKey: newObjectKey() }
  await objects.put('objects-a/1', sealObject(content.objectKey, content.contentId, 1, bytes))
  const first = MIB / PART
  expect(await readObjectPart(objects, content, first + 1)).toEqual(bytes.subarray(PART, 2 * PART))
  expect(await readObjectPart(objects, content, first + 2)).toEqual(bytes.subarray(2 * PART))
  expect(await readObjectPart(objects, content, first + 3)).toBeUndefined()
  const other = { ...content, objectKey: newObjectKey() }
  expect(await readObjectPart(objects, other, first)).toBeUndefined()
  await objects.put('objects-a/0', sealObject(content.objectKey, content.contentId, 1, bytes))
  expect(await readObjectPart(objects, content, 0)).toBeUndefined()
  const read = async (number: number): Promise<number> => {
    let length = 0
    for await (const part of readObject(objects, content, number)) length += part.length
    return length
  }
  expect(await read(1)).toBe(bytes.length)
  for (const number of [0, 2]) await expect(read(number)).rejects.toMatchObject({ code: 'not_found' })
})
