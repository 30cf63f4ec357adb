import { isTerm } from '@sluice/wire/protocol-words'
import { decodePercent } from '@sluice/wire/media-source'
import { boundaryOf, type FormPart } from '@sluice/wire/multipart'
import {
  type FileFacts,
  hasBinarySignature,
  isStatedText,
  readTextFile,
  SIGNATURE_BYTES,
  type TextFile,
} from '@sluice/wire/text-file'
import { GatewayError } from '../../errors.ts'
import type { FormBody } from '../../call/body-reader.ts'
import { readStoredBytes, type Replacement } from '../../call/form-body.ts'
import type { CallGuards } from './call-guards.ts'
import { checkedFileText, refusing } from './guarded-request.ts'
import { checkTexts } from './services/checked-request.ts'

/** Fields of forms that are settings: they are not checked where they look like a word of the protocol. */
const SETTINGS: ReadonlySet<string> = new Set([
  'background',
  'input_fidelity',
  'language',
  'model',
  'moderation',
  'n',
  'output_compression',
  'output_format',
  'partial_images',
  'quality',
  'response_format',
  'seconds',
  'size',
  'stream',
  'style',
  'temperature',
  'user_id',
])

/** A text of a form that guards check, and the change of the form if they change the text. */
interface FormText {
  readonly text: string
  readonly change: (text: string) => FormChange
}

type FormChange = { readonly field: FormPart } | { readonly edit: Replacement }

/**
 * Checks the fields of a form, its files of text, and the names of its files. What is not a part of the form is not
 * sent. Resolves to the form to send on, which is the same object if nothing changes. Rejects with
 * `guard_blocked`.
 */
export async function guardedForm(guards: CallGuards, form: FormBody): Promise<FormBody> {
  return refusing(guards, async () => {
    const fields = new Map<FormPart, FormPart>()
    const edits: Replacement[] = around(form)
    for (const part of form.parts)
      for (const { text, change } of await textsOf(form, part)) {
        const checked = await checkedFormText(guards, text)
        if (checked === text) continue
        refuseBoundary(checked, form.contentType)
        const changed = change(checked)
        if ('field' in changed) fields.set(part, changed.field)
        else edits.push(changed.edit)
      }
    if (fields.size + edits.length === 0) return form
    return { ...form, parts: form.parts.map((part) => fields.get(part) ?? part), edits }
  })
}

// The client chooses the boundary and knows what guards write. Its text may therefore become one that ends the part, and
// begins another one, only once it is changed.
function refuseBoundary(changed: string, contentType: string): void {
  if (!changed.includes(`--${boundaryOf(contentType)}`)) return
  throw new GatewayError(
    'invalid_request',
    'a guard has changed a part of the form into text that contains the boundary of the form: use another boundary',
  )
}

async function checkedFormText(guards: CallGuards, text: string): Promise<string> {
  const checked = await checkedFileText(guards, text, { place: 'input', isSigned: false })
  const [judged] = guards.services ? await checkTexts(guards.services, [checked]) : [checked]
  return judged ?? checked
}

/** Removes what stands in front of the first boundary, and behind the line of the last one. */
function around({ bytes, bounds: [from, to] }: FormBody): Replacement[] {
  const before = from > 0 ? [{ part: { start: 0, end: from }, text: '' }] : []
  const behind =
    bytes.length > to + LINE_END ? [{ part: { start: to, end: bytes.length }, text: '\r\n' }] : []
  return [...before, ...behind]
}

const LINE_END = 2

async function textsOf(form: FormBody, part: FormPart): Promise<FormText[]> {
  const head = await headText(form, part)
  const content = await contentText(form, part)
  return [...(head ? [head] : []), ...(content ? [content] : [])]
}

async function contentText(form: FormBody, part: FormPart): Promise<FormText | undefined> {
  const { name, text, filename, contentType: mediaType } = part
  // A field whose bytes are no UTF-8 is read as a file.
  if (filename === undefined && text !== undefined && !/[\0\ufffd]/.test(text)) {
    if (SETTINGS.has(name) && isTerm(text)) return undefined
    return { text, change: (next) => ({ field: { ...part, text: next, isChanged: true } }) }
  }
  const file = await textFile(form, part, { mediaType, name: filename ?? '' }, filename === undefined)
  return file && { text: file.text, change: (next) => ({ edit: { part, text: file.encode(next) } }) }
}

/** Reads a file of a form, or a field that is too long to be kept, if it is a text. */
async function textFile(
  form: FormBody,
  { start, end }: FormPart,
  facts: FileFacts,
  isField: boolean,
): Promise<TextFile | undefined> {
  const head = await bytesOf(form, start, Math.min(end, start + SIGNATURE_BYTES))
  const isText = isField || isStatedText(facts)
  if (!isText && hasBinarySignature(head) && head.some((byte) => byte >= 0x80 || byte === 0)) return undefined
  if (!Buffer.isBuffer(form.bytes)) form.hold(end - start)
  const bytes = await bytesOf(form, start, end)
  return readTextFile(bytes, isField ? { ...facts, mediaType: 'text/plain' } : facts)
}

async function bytesOf({ bytes }: FormBody, start: number, end: number): Promise<Buffer> {
  const pieces: Buffer[] = []
  for (let at = start; at < end; at += pieces.at(-1)?.length ?? 0)
    pieces.push(await readStoredBytes(bytes, at, end - at))
  return pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces)
}

/** The headers of a part as one text; undefined if they have nothing but words of the protocol. */
async function headText(form: FormBody, part: FormPart): Promise<FormText | undefined> {
  const { headStart, start, name, filename, contentType } = part
  const given = (await bytesOf(form, headStart, start)).toString()
  const usual = headOf({ name, filename, contentType })
  const isUsual = given.toLowerCase() === usual.toLowerCase()
  if (isUsual && [name, filename ?? '', contentType].every(isTerm)) return undefined
  const plain = withoutEscapes(given)
  const text = plain === given ? given : `${given}\n${plain}`
  return {
    text,
    // Only what is known is written anew: a name that has no match is kept, everything else is left out.
    change: (next) => ({
      edit: {
        part: { start: headStart, end: start },
        text: headOf({
          name: isTerm(name) ? name : 'field',
          filename: filename === undefined ? undefined : keptName(filename, next, text),
          contentType: isTerm(contentType) ? contentType : '',
        }),
      },
    }),
  }
}

/** Headers with the escapes of a name (RFC 5987) resolved, as many as are valid. */
function withoutEscapes(head: string): string {
  return head.includes('%') ? decodePercent(head).toString() : head
}

/** The name of a file, if it is still in the text as it was checked, else another one with the same ending. */
function keptName(filename: string, checked: string, given: string): string {
  const isKept = [filename, withoutEscapes(filename)].every(
    (name) => occurrences(checked, name) === occurrences(given, name),
  )
  return isKept ? filename : `file${/\.[A-Za-z\d]{1,8}$/.exec(filename)?.[0] ?? ''}`
}

function occurrences(text: string, part: string): number {
  return text.split(part).length
}

function headOf({
  name,
  filename,
  contentType,
}: Pick<FormPart, 'name' | 'filename' | 'contentType'>): string {
  const file = filename === undefined ? '' : `; filename="${filename.replaceAll(/["\r\n\\]/g, '_')}"`
  const type = contentType === '' ? '' : `Content-Type: ${contentType}\r\n`
  return `Content-Disposition: form-data; name="${name}"${file}\r\n${type}\r\n`
}
