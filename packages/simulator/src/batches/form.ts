import { malformed } from '../refusal.ts'

/** A form whose file was kept while it arrived. */
export interface ReceivedForm<Kept> {
  readonly texts: ReadonlyMap<string, string>
  readonly file: { readonly name: string; readonly kept: Kept } | undefined
}

const MAX_HEAD_BYTES = 16_384
const MAX_TEXT_BYTES = 65_536

/** Reads a multipart form; `keep` gets the content of its file piece by piece. Throws `Refusal` if it is not one. */
export async function receiveForm<Kept>(
  pieces: AsyncIterable<Buffer>,
  contentType: string,
  keep: (content: AsyncIterable<Buffer>) => Promise<Kept>,
): Promise<ReceivedForm<Kept>> {
  const boundary = /boundary=(?:"([^"]+)"|([^;\s]+))/i.exec(contentType)
  if (!boundary) throw malformed('The content type has no boundary')
  const delimiter = Buffer.from(`\r\n--${boundary[1] ?? boundary[2]}`)
  const reader = new MarkReader(pieces)
  const texts = new Map<string, string>()
  let file: ReceivedForm<Kept>['file']
  await reader.textUntil(delimiter, MAX_HEAD_BYTES)
  for (;;) {
    const rest = await reader.textUntil(Buffer.from('\r\n'), MAX_HEAD_BYTES)
    if (rest.startsWith('--')) return { texts, file }
    const head = await reader.textUntil(Buffer.from('\r\n\r\n'), MAX_HEAD_BYTES)
    const name = /\bname="([^"]*)"/i.exec(head)?.[1] ?? ''
    const filename = /\bfilename="([^"]*)"/i.exec(head)?.[1]
    if (filename === undefined) texts.set(name, await reader.textUntil(delimiter, MAX_TEXT_BYTES))
    else {
      if (file || name !== 'file') throw malformed("Expected one file, in the field 'file'")
      file = { name: filename, kept: await keep(reader.until(delimiter)) }
    }
  }
}

/** Reads a content up to marks. Only bytes that may begin a mark are kept in memory. */
class MarkReader {
  readonly #pieces: AsyncIterator<Buffer>
  // The first delimiter has no line before it.
  #rest: Buffer = Buffer.from('\r\n')

  constructor(pieces: AsyncIterable<Buffer>) {
    this.#pieces = pieces[Symbol.asyncIterator]()
  }

  /** Yields the bytes before the mark, and skips the mark. */
  async *until(mark: Buffer): AsyncGenerator<Buffer, void, undefined> {
    for (;;) {
      const at = this.#rest.indexOf(mark)
      const safe = at < 0 ? this.#rest.length - mark.length + 1 : at
      if (safe > 0) yield this.#rest.subarray(0, safe)
      if (at >= 0) {
        this.#rest = this.#rest.subarray(at + mark.length)
        return
      }
      const { done, value } = await this.#pieces.next()
      if (done) throw malformed('The form breaks off')
      this.#rest = Buffer.concat([this.#rest.subarray(Math.max(safe, 0)), value])
    }
  }

  async textUntil(mark: Buffer, maxBytes: number): Promise<string> {
    const found: Buffer[] = []
    let bytes = 0
    for await (const piece of this.until(mark)) {
      bytes += piece.length
      if (bytes > maxBytes) throw malformed('A part of the form is too large')
      found.push(piece)
    }
    return Buffer.concat(found).toString()
  }
}
