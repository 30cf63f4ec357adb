import { closeSync, openSync, readSync } from 'node:fs'

/** Maximum number of tables, indexes and the like; one-api and new-api have about a hundred. */
const MAX_OBJECTS = 10_000
/** Maximum bytes of the statements that created them. */
const MAX_STATEMENT_BYTES = 16 * 2 ** 20

const HEADER_BYTES = 100
const LEAF_PAGE = 13
const INNER_PAGE = 5

/**
 * Throws if the schema of a SQLite file is larger than that of a real gateway. SQLite parses all of it before the first
 * statement, which takes hours and gigabytes for a schema that was made for this purpose, and cannot be interrupted. Nothing
 * is decided about a damaged file, which SQLite refuses itself. File format: https://sqlite.org/fileformat.html
 */
export function refuseHugeSchema(path: string): void {
  const file = openSync(path, 'r')
  try {
    const pageBytes = pageBytesOf(readAt(file, 0, HEADER_BYTES))
    if (pageBytes === undefined) return
    let objects = 0
    let bytes = 0
    // The schema is the table whose root is the first page.
    const pages = [1]
    for (let visited = 1; pages.length > 0; visited += 1) {
      const number = pages.pop() ?? 1
      const page = readAt(file, (number - 1) * pageBytes, pageBytes)
      const at = number === 1 ? HEADER_BYTES : 0
      const read = page.length === pageBytes ? readPage(page, at) : undefined
      if (!read) return
      objects += read.objects
      bytes += read.bytes
      pages.push(...read.children)
      if (objects > MAX_OBJECTS || visited > MAX_OBJECTS)
        throw new Error(`its schema has more than ${MAX_OBJECTS} tables and indexes`)
      if (bytes > MAX_STATEMENT_BYTES)
        throw new Error(`its schema has more than ${MAX_STATEMENT_BYTES} bytes`)
    }
  } finally {
    closeSync(file)
  }
}

interface SchemaPage {
  readonly objects: number
  readonly bytes: number
  readonly children: readonly number[]
}

/** Reads a page of a table; undefined if it is none. */
function readPage(page: Buffer, at: number): SchemaPage | undefined {
  const kind = page[at]
  const isLeaf = kind === LEAF_PAGE
  if (!isLeaf && kind !== INNER_PAGE) return undefined
  const cells = page.readUInt16BE(at + 3)
  const pointers = at + (isLeaf ? 8 : 12)
  if (pointers + 2 * cells > page.length) return undefined
  const offsets = Array.from({ length: cells }, (_, index) => page.readUInt16BE(pointers + 2 * index))
  if (offsets.some((offset) => offset + 4 > page.length)) return undefined
  if (isLeaf)
    return {
      objects: cells,
      bytes: offsets.reduce((sum, offset) => sum + varintAt(page, offset), 0),
      children: [],
    }
  const children = [...offsets.map((offset) => page.readUInt32BE(offset)), page.readUInt32BE(at + 8)]
  return children.includes(0) ? undefined : { objects: 0, bytes: 0, children }
}

/** A SQLite varint: seven bits in each byte, the highest bit set in all but the last. */
function varintAt(page: Buffer, at: number): number {
  let value = 0
  for (const byte of page.subarray(at, at + 9)) {
    value = value * 128 + (byte & 0x7f)
    if (byte < 0x80) break
  }
  return value
}

function pageBytesOf(header: Buffer): number | undefined {
  if (header.length < HEADER_BYTES) return undefined
  const stated = header.readUInt16BE(16)
  const bytes = stated === 1 ? 65_536 : stated
  return bytes >= 512 && (bytes & (bytes - 1)) === 0 ? bytes : undefined
}

function readAt(file: number, position: number, length: number): Buffer {
  const bytes = Buffer.alloc(length)
  return bytes.subarray(0, readSync(file, bytes, 0, length, position))
}
