import { isUtf8 } from 'node:buffer'

/** What is stated about a file, beside its bytes. */
export interface FileFacts {
  /** Media type, with its parameters; empty if not stated. */
  readonly mediaType: string
  /** Name of the file; empty if not stated. */
  readonly name: string
}

/** A file whose content is a text. */
export interface TextFile {
  readonly text: string
  /** Returns the bytes of the file with another text. */
  encode(text: string): Buffer
}

/** Media types of texts that do not begin with `text/`. */
const TEXT_TYPE =
  /^(?:text\/|message\/|application\/(?:[\w.+-]*\+)?(?:json|xml|yaml|toml|csv|sql|rtf|graphql|javascript|ecmascript|typescript|ndjson|jsonl|x-(?:ndjson|jsonlines|json|yaml|toml|sh|csh|perl|python|httpd-php|sql|tex|latex|subrip|www-form-urlencoded|javascript|pem-file|sql))\b|image\/svg)/i
/** Endings of the names of text files. */
const TEXT_NAME =
  /\.(?:txt|text|md|markdown|rst|csv|tsv|psv|json|jsonl|ndjson|json5|xml|xsd|xsl|svg|html?|xhtml|css|s[ac]ss|less|ya?ml|toml|ini|cfg|conf|config|properties|env|log|out|err|srt|vtt|sub|ass|eml|mbox|ics|vcf|rtf|tex|bib|sql|graphql|gql|proto|diff|patch|pem|crt|cer|key|pub|asc|csr|ps1|bat|cmd|sh|bash|zsh|fish|py|ipynb|rb|pl|php|js|mjs|cjs|jsx|ts|mts|cts|tsx|vue|svelte|java|kt|kts|scala|groovy|gradle|c|h|cc|cpp|cxx|hpp|cs|fs|vb|go|rs|swift|m|mm|r|jl|lua|dart|ex|exs|erl|hs|clj|lisp|scm|ml|tf|hcl|dockerfile|makefile|gitignore|lock|list|lst|me|nfo)$/i
/** Names of text files that have no ending. */
const TEXT_NAMES = /^(?:.*[\\/])?(?:\.?env|dockerfile|makefile|readme|license|changelog|\.[\w-]+rc)$/i

/**
 * First bytes of files that are no texts, at their offsets. Each has a byte that texts do not contain, or is so
 * long that texts do not begin so by accident.
 */
const SIGNATURES: readonly (readonly [offset: number, bytes: string])[] = [
  [0, '\x89PNG\r\n\x1a\n'],
  [0, '\xff\xd8\xff'],
  [0, 'GIF87a'],
  [0, 'GIF89a'],
  [8, 'WEBP'],
  [8, 'WAVE'],
  [8, 'AVI '],
  [0, 'II*\0'],
  [0, 'MM\0*'],
  [0, '\0\0\x01\0'],
  [4, 'ftyp'],
  [0, 'OggS\0'],
  [0, 'fLaC\0'],
  [0, 'ID3\x02\0'],
  [0, 'ID3\x03\0'],
  [0, 'ID3\x04\0'],
  [0, '\x1aE\xdf\xa3'],
  [0, 'FLV\x01'],
  [0, '\0\0\x01\xba'],
  [0, '\0\0\x01\xb3'],
  [0, '\x30\x26\xb2\x75\x8e\x66\xcf\x11'],
  [0, 'PK\x03\x04'],
  [0, 'PK\x05\x06'],
  [0, '\x1f\x8b\x08'],
  [0, '\xfd7zXZ\0'],
  [0, '7z\xbc\xaf\x27\x1c'],
  [0, '\x28\xb5\x2f\xfd'],
  [0, 'Rar!\x1a\x07'],
  [0, '\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1'],
  [0, 'SQLite format 3\0'],
]
/** Number of bytes that are enough to recognise a file by its first bytes. */
export const SIGNATURE_BYTES = 16
/** PDF files are no texts, even where all their bytes are those of a text. */
const PDF = '%PDF-'

/** Whether media type or name of a file state that it is a text. */
export function isStatedText({ mediaType, name }: FileFacts): boolean {
  return TEXT_TYPE.test(mediaType) || TEXT_NAME.test(name) || TEXT_NAMES.test(name)
}

/**
 * Whether a file is none of text by its first bytes, although it may contain some: an image, a recording, a PDF or
 * an archive. `head` has at least `SIGNATURE_BYTES` bytes, or the whole file.
 */
export function hasBinarySignature(head: Buffer): boolean {
  const first = head.toString('latin1', 0, SIGNATURE_BYTES)
  if (first.startsWith(PDF)) return true
  return SIGNATURES.some(([offset, bytes]) => first.startsWith(bytes, offset))
}

/**
 * Reads a file as a text; undefined if it is not a text by its media type, its name or its content.
 * `docs/guards.md: Files of text`.
 */
export function readTextFile(bytes: Buffer, facts: FileFacts): TextFile | undefined {
  if (bytes.length === 0) return undefined
  const marked = byMark(bytes)
  if (marked) return marked
  const isStated = isStatedText(facts)
  const isSigned = hasBinarySignature(bytes)
  if (isSigned && !isStated && (bytes.toString('latin1', 0, PDF.length) === PDF || !isPlainText(bytes)))
    return undefined
  const wide = byZeros(bytes)
  if (wide) return wide
  if (isUtf8(bytes) && (isStated || isPlainText(bytes))) return UTF8(bytes)
  if (!isStated && (isSigned || !hasTextWindow(bytes))) return undefined
  return byCharset(bytes, facts.mediaType)
}

const UTF8 = (bytes: Buffer): TextFile => ({ text: bytes.toString(), encode: (text) => Buffer.from(text) })
/** Every sequence of bytes is a text in this encoding, in which ASCII is found whatever the rest is. */
const LATIN1 = (bytes: Buffer): TextFile => ({
  text: bytes.toString('latin1'),
  encode: (text) => (isLatin1(text) ? Buffer.from(text, 'latin1') : Buffer.from(text)),
})

function isLatin1(text: string): boolean {
  return !/[^\0-\xff]/.test(text)
}

/** Reads a text by the mark at its beginning (BOM); undefined if there is none. */
function byMark(bytes: Buffer): TextFile | undefined {
  const mark = bytes.toString('latin1', 0, 4)
  // A text in UTF-16 that begins with a zero character has the mark of UTF-32, so that it is read as such.
  if (mark === '\xff\xfe\0\0') return utf32(bytes, true)
  if (mark === '\0\0\xfe\xff') return utf32(bytes, false)
  if (mark.startsWith('\xff\xfe')) return utf16(bytes, true)
  if (mark.startsWith('\xfe\xff')) return utf16(bytes, false)
  return mark.startsWith('\xef\xbb\xbf') && isUtf8(bytes) ? UTF8(bytes) : undefined
}

/** Bytes that are looked at together. */
const WINDOW = 1024

/**
 * Reads a text in UTF-16 or UTF-32 without a mark. Where it is in ASCII, every second byte is zero, or three of
 * four; elsewhere any byte may stand.
 */
function byZeros(bytes: Buffer): TextFile | undefined {
  for (let from = bytes.indexOf(0); from !== -1; from = bytes.indexOf(0, from + WINDOW)) {
    const start = from - (from % 4)
    const read = readerByZeros(bytes.subarray(start, start + WINDOW))
    if (read) return read(bytes)
  }
  return undefined
}

function readerByZeros(window: Buffer): ((bytes: Buffer) => TextFile) | undefined {
  const zeros = [0, 0, 0, 0]
  if (window.length < 4) return undefined
  for (let at = 0; at < window.length; at += 1)
    if (window[at] === 0) zeros[at % 4] = (zeros[at % 4] as number) + 1
  const [a, b, c, d] = zeros.map((count) => count >= (window.length / 4) * 0.6)
  const readers = [
    a && b && c && !d ? (bytes: Buffer) => utf32(bytes, false) : undefined,
    !a && b && c && d ? (bytes: Buffer) => utf32(bytes, true) : undefined,
    a && c && !b && !d ? (bytes: Buffer) => utf16(bytes, false) : undefined,
    b && d && !a && !c ? (bytes: Buffer) => utf16(bytes, true) : undefined,
  ]
  return readers.find((read) => read && isMostlyPrintable(read(window).text))
}

// Samples of a quiet recording have zeros at the same places.
function isMostlyPrintable(text: string): boolean {
  return text.replaceAll(/[^\t\n\r\x20-\x7e]/g, '').length > text.length / 2
}

function utf16(bytes: Buffer, isLittle: boolean): TextFile {
  // Node writes beyond its memory if it decodes an odd number of bytes at an odd address.
  const even = bytes.subarray(0, bytes.length - (bytes.length % 2))
  const swapped = (given: Buffer): Buffer => (isLittle ? given : Buffer.from(given).swap16())
  return {
    text: swapped(even).toString('utf16le'),
    encode: (text) => swapped(Buffer.from(text, 'utf16le')),
  }
}

function utf32(bytes: Buffer, isLittle: boolean): TextFile {
  const points: string[] = []
  for (let at = 0; at + 4 <= bytes.length; at += 4) {
    const point = isLittle ? bytes.readUInt32LE(at) : bytes.readUInt32BE(at)
    points.push(point <= 0x10ffff ? String.fromCodePoint(point) : '\ufffd')
  }
  return {
    text: points.join(''),
    encode(text) {
      const written = Array.from(text, (character) => character.codePointAt(0) ?? 0)
      const encoded = Buffer.alloc(4 * written.length)
      for (const [index, point] of written.entries()) {
        if (isLittle) encoded.writeUInt32LE(point, 4 * index)
        else encoded.writeUInt32BE(point, 4 * index)
      }
      return encoded
    },
  }
}

/** Mark at the beginning of UTF-8, which decoders believe more than a stated charset. */
const MARK = '\ufeff'

/** Reads a text in the charset that its media type states. */
function byCharset(bytes: Buffer, mediaType: string): TextFile {
  const charset = /;\s*charset\s*=\s*["']?([\w.:-]+)/i.exec(mediaType)?.[1]
  if (charset === undefined || /^(?:utf-?8|us-ascii|iso-?8859-1|latin-?1)$/i.test(charset))
    return LATIN1(bytes)
  if (/^utf-?16/i.test(charset) && !hasTextWindow(bytes)) return utf16(bytes, !/be$/i.test(charset))
  if (/^utf-?16/i.test(charset)) return LATIN1(bytes)
  try {
    const text = new TextDecoder(charset).decode(bytes)
    // There is no encoder for other charsets, so that a changed text is written in UTF-8.
    return { text, encode: (changed) => Buffer.from(changed.startsWith(MARK) ? changed : MARK + changed) }
  } catch {
    return LATIN1(bytes)
  }
}

/** Bytes that texts do not contain. */
const NO_TEXT = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte < 0x20 && ![0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x1b].includes(byte) ? 1 : 0,
)
/** Bytes of ASCII that texts consist of. */
const IS_PRINTABLE = Uint8Array.from({ length: 256 }, (_, byte) =>
  (byte >= 0x20 && byte < 0x7f) || [0x09, 0x0a, 0x0d].includes(byte) ? 1 : 0,
)

/** Whether bytes are valid UTF-8 with hardly any control characters. */
function isPlainText(bytes: Buffer): boolean {
  if (!isUtf8(bytes)) return false
  let others = 0
  const most = bytes.length / 8
  for (let at = 0; at < bytes.length; at += 1) {
    others += NO_TEXT[bytes[at] as number] as number
    if (others > most) return false
  }
  return true
}

/** Whether any part of the bytes consists of printable characters, so that a model might read it as a text. */
function hasTextWindow(bytes: Buffer): boolean {
  for (let from = 0; from < bytes.length; from += WINDOW) {
    const to = Math.min(bytes.length, from + WINDOW)
    if (from > 0 && to - from < WINDOW / 8) return false
    let printable = 0
    for (let at = from; at < to; at += 1) printable += IS_PRINTABLE[bytes[at] as number] as number
    if (printable > ((to - from) * 7) / 8) return true
  }
  return false
}
