import { expect, test } from 'vitest'
import { receiveForm } from './form.ts'
import { listElements } from './list-elements.ts'

async function textOf(pieces: AsyncIterable<Buffer>): Promise<string> {
  const found: Buffer[] = []
  for await (const piece of pieces) found.push(piece)
  return Buffer.concat(found).toString()
}

/** The bytes of a text, in pieces of a size. */
async function* inPieces(text: string, size: number): AsyncGenerator<Buffer> {
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

const CONTENT = 'one\r\n--x\r\n--xyz two\r\n\r\nthree'
const FORM = [
  '--xyzzy',
  'Content-Disposition: form-data; name="purpose"',
  '',
  'batch',
  '--xyzzy',
  'Content-Disposition: form-data; name="file"; filename="lines.jsonl"',
  'Content-Type: application/octet-stream',
  '',
  CONTENT,
  '--xyzzy--',
  '',
].join('\r\n')

for (const size of [1, 7, 1_000])
  test(`a form that arrives in pieces of ${size} bytes has its texts and its file`, async () => {
    const { texts, file } = await receiveForm(
      inPieces(FORM, size),
      'multipart/form-data; boundary=xyzzy',
      textOf,
    )
    expect(texts.get('purpose')).toBe('batch')
    expect(file).toEqual({ name: 'lines.jsonl', kept: CONTENT })
  })

test('a form that breaks off within its file is refused', async () => {
  const broken = inPieces(FORM.slice(0, FORM.indexOf('three')), 10)
  await expect(receiveForm(broken, 'multipart/form-data; boundary=xyzzy', textOf)).rejects.toThrow(
    'breaks off',
  )
})

test('the elements of a list are found while it arrives, also if their texts contain brackets and quotes', async () => {
  const elements = [{ a: '}],"\\' }, { b: [{ c: '{' }] }]
  const found: unknown[] = []
  for await (const text of listElements(inPieces(JSON.stringify({ other: 1, requests: elements }), 3)))
    found.push(JSON.parse(text))
  expect(found).toEqual(elements)
})

test('a list that breaks off is refused', async () => {
  await expect(async () => {
    for await (const _ of listElements(inPieces('{"requests": [{"a": 1}', 5)));
  }).rejects.toThrow('not a JSON object')
})
