import { WireError } from '@sluice/wire/wire-error'
import { type FormPart, FormReader } from '@sluice/wire/multipart'
import { choppedAtRandom } from '../../generators/chunks.ts'
import { invariant } from '../invariant.ts'
import type { Target } from '../target.ts'

const BOUNDARY = 'xyz'
const DELIMITER = `--${BOUNDARY}`
const PART = `${DELIMITER}\r\nContent-Disposition: form-data; name="model"\r\n\r\nm\r\n`
const FILE = `${DELIMITER}\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\nContent-Type: audio/wav\r\n\r\nRIFF\0\r\n`
const END = `${DELIMITER}--\r\n`

function read(pieces: readonly Buffer[]): readonly FormPart[] | string {
  const reader = new FormReader(BOUNDARY)
  try {
    for (const piece of pieces) reader.push(piece)
    return reader.end()
  } catch (error) {
    if (!(error instanceof WireError)) throw error
    return error.code
  }
}

/** Names and contents by Node's own reader; undefined where it refuses the form. */
async function byNode(input: Buffer): Promise<readonly (readonly [string, string])[] | undefined> {
  const headers = { 'content-type': `multipart/form-data; boundary=${BOUNDARY}` }
  try {
    const form = await new Response(new Uint8Array(input), { headers }).formData()
    return await Promise.all(
      [...form].map(
        async ([name, value]): Promise<readonly [string, string]> => [
          name,
          typeof value === 'string' ? value : Buffer.from(await value.arrayBuffer()).toString('latin1'),
        ],
      ),
    )
  } catch {
    return undefined
  }
}

/** Reader of forms with files. */
export const FORMS: Target = {
  seeds: [
    PART + END,
    FILE + PART + END,
    PART + FILE + END,
    `${PART}${DELIMITER}\r\ncontent-disposition:form-data;name=a\r\n\r\n\r\n${END}`,
    PART.replace('; name', '; filename="\\"; name') + END,
    END,
    `-${DELIMITER}\r\nContent-Disposition:form-data name="\r\n\r\n\r\n${END}`,
  ],
  tokens: [DELIMITER, '\r\n', '\r\n\r\n', '--', '; name="model"', '; filename="x"', 'name*=', '\\"', PART],
  repeated: [
    ['', PART, END],
    ['', PART.replace('\r\n\r\n', `\r\nX: x${' '.repeat(7_000)}x\r\n\r\n`), END],
    [`${DELIMITER}\r\nX: x`, ' ', `x\r\n\r\n\r\n${END}`],
  ],
  async run(input, random) {
    const whole = read([input])
    const inPieces = read(choppedAtRandom(input, 1 + Math.floor(random() * 32), random))
    invariant(
      JSON.stringify(whole) === JSON.stringify(inPieces),
      'a cut changes nothing of what is read of a form',
    )
    if (typeof whole === 'string') return whole
    let at = 0
    for (const { start, end, text } of whole) {
      invariant(start > at && end >= start && end < input.length, 'parts are in order, within the form')
      const content = input.subarray(start, end)
      invariant(!`\n${content.toString('latin1')}`.includes(`\n${DELIMITER}`), 'no part has a boundary in it')
      invariant(text === undefined || text === content.toString(), 'a text is the content')
      at = end
    }
    const expected = await byNode(input)
    if (expected) {
      const found = whole.map(({ name, start, end, filename }) => [
        name,
        input.subarray(start, end).toString(filename === undefined ? 'utf8' : 'latin1'),
      ])
      invariant(
        JSON.stringify(found) === JSON.stringify(expected),
        `another reader finds ${JSON.stringify(expected)}, not ${JSON.stringify(found)}`,
      )
    }
    return `${whole.length} ${expected ? 'as Node' : 'not by Node'}`
  },
}
