import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import type { FormPart } from '@sluice/wire/multipart'
import { EditedForm } from './form-body.ts'
import { Spool } from './spool.ts'

const MIB = 1024 * 1024
const folder = mkdtempSync(join(tmpdir(), 'sluice-spool-'))
afterAll(() => rmSync(folder, { recursive: true }))

const newSpool = (bodyLimit = MIB): Spool =>
  new Spool(
    folder,
    () => bodyLimit,
    () => performance.now(),
  )
const part = (start: number, end: number): FormPart => ({
  name: 'model',
  filename: undefined,
  contentType: '',
  headStart: start,
  start,
  end,
  text: '',
})

async function bytesOf(form: EditedForm): Promise<Buffer> {
  const pieces: Buffer[] = []
  for (let at = 0; at < form.length; at += pieces.at(-1)?.length ?? 0) pieces.push(await form.read(at))
  return Buffer.concat(pieces)
}

test('replacing texts in a multipart form changes only the bytes of these texts, in memory and on disk', async () => {
  const spool = newSpool()
  const cuts = fc.uniqueArray(fc.nat({ max: 200_000 }), { minLength: 4, maxLength: 4 })
  await fc.assert(
    fc.asyncProperty(cuts, fc.string(), fc.string(), async (places, one, other) => {
      const [a = 0, b = 0, c = 0, length = 0] = places.sort((x, y) => x - y)
      const body = Buffer.alloc(length, 'abcdefghijk')
      const replacements = [
        { part: part(b, c), text: other },
        { part: part(0, a), text: one },
      ]
      const expected = Buffer.concat([
        Buffer.from(one),
        body.subarray(a, b),
        Buffer.from(other),
        body.subarray(c),
      ])
      const file = spool.newFile({ client: 1, key: 1 })
      await file.append(body)
      for (const stored of [body, file]) {
        const form = new EditedForm(stored, replacements)
        expect(form.length).toBe(expected.length)
        expect((await bytesOf(form)).equals(expected)).toBe(true)
      }
      await file.close()
    }),
    { numRuns: 20 },
  )
  expect(spool.held).toBe(0)
})

test('a multipart form buffered on disk has no visible file name, and two simultaneous closes release its disk space once', async () => {
  const spool = newSpool()
  const file = spool.newFile({ client: 1, key: 1 })
  await file.append(Buffer.from('hello '))
  await file.append(Buffer.from('there'))
  expect(readdirSync(folder)).toEqual([])
  expect((await file.read(0, 100)).toString()).toBe('hello there')
  expect((await file.read(6, 3)).toString()).toBe('the')
  expect(spool.held).toBe(11)
  await Promise.all([file.close(), file.close()])
  expect(spool.held).toBe(0)
  await expect(file.read(0, 1)).rejects.toThrow()
})

test('the buffer file of a multipart form is removed even if the form is closed while the file is being opened', async () => {
  const path = join(folder, 'upload')
  const file = newSpool().newNamedFile({ client: 1, key: 1 }, path)
  let isOpened = false
  void file.descriptor().then(() => {
    isOpened = true
  })
  await file.close()
  expect(isOpened).toBe(true)
  rmSync(path)
})

test('a client that fills its share of the disk space for forms is refused, while another client still gets its own share', async () => {
  // Sixteen bodies of 256 MiB each need 4 GiB of disk space, of which nothing is written here.
  const spool = newSpool(256 * MIB)
  const files = ['one', 'two'].map((client) => spool.newFile({ client, key: '' }))
  await files[1]?.append(Buffer.from('x'))
  const large = { length: 3 * 1024 * MIB } as Buffer
  expect(() => files[0]?.append(large).catch(() => {})).not.toThrow()
  expect(() => files[0]?.append(large)).toThrow('no room for the request body')
  expect(() => files[1]?.append(Buffer.from('y')).catch(() => {})).not.toThrow()
  for (const file of files) void file.close()
})
