import { readdir, readFile } from 'node:fs/promises'
import { extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import { ASSETS } from './console-paths.ts'
import type { Encoding } from './content-encoding.ts'

/** Folder that the console is built into, the same for sources and package. */
const BUILT = fileURLToPath(new URL('../../console/built', import.meta.url))

/** Quality of Brotli: higher ones take ten times as long for a size one tenth smaller. */
const BROTLI_QUALITY = 9

const TYPES = new Map([
  ['.js', 'text/javascript; charset=utf-8'],
  ['.css', 'text/css; charset=utf-8'],
  ['.svg', 'image/svg+xml'],
])

const compressBrotli = promisify(brotliCompress)
const compressGzip = promisify(gzip)

/** A file of the console in memory. Each encoding is computed once, in a thread of libuv. */
export class BuiltFile {
  readonly type: string
  readonly #bytes: Buffer
  readonly #encoded = new Map<Encoding, Promise<Buffer>>()

  constructor(name: string, bytes: Buffer) {
    this.type = TYPES.get(extname(name)) ?? 'application/octet-stream'
    this.#bytes = bytes
  }

  /** The bytes of the file in an encoding. */
  encoded(encoding: Encoding): Promise<Buffer> {
    const known = this.#encoded.get(encoding)
    if (known) return known
    const bytes = this.#encode(encoding)
    this.#encoded.set(encoding, bytes)
    return bytes
  }

  #encode(encoding: Encoding): Promise<Buffer> {
    switch (encoding) {
      case 'br':
        return compressBrotli(this.#bytes, {
          params: {
            [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY,
            [constants.BROTLI_PARAM_SIZE_HINT]: this.#bytes.length,
          },
        })
      case 'gzip':
        return compressGzip(this.#bytes)
      case 'identity':
        return Promise.resolve(this.#bytes)
    }
  }
}

/** The console as it was built. */
export interface BuiltConsole {
  /** HTML page with placeholders for the nonce. */
  readonly page: string
  /** Files by their URL path. */
  readonly assets: ReadonlyMap<string, BuiltFile>
}

/** Reads the built console into memory, without its source maps; undefined where it is not built. */
export async function readBuiltConsole(): Promise<BuiltConsole | undefined> {
  const page = await readFile(join(BUILT, 'index.html'), 'utf8').catch(absent)
  if (page === undefined) return undefined
  const names = await readdir(join(BUILT, ASSETS), { recursive: true, withFileTypes: true })
  const assets = new Map<string, BuiltFile>()
  for (const entry of names) {
    if (!entry.isFile() || extname(entry.name) === '.map') continue
    const path = join(entry.parentPath, entry.name)
    assets.set(path.slice(BUILT.length), new BuiltFile(entry.name, await readFile(path)))
  }
  return { page, assets }
}

function absent(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
  return undefined
}
