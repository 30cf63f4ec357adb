import { randomBytes } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import type { Response, ResponseHeaders } from '@sluice/http1'
import { keyFromRequest } from '../accounts/authentication/key-from-request.ts'
import type { Options } from '../domain/options.ts'
import { chooseEncoding, type Encoding } from '../http/content-encoding.ts'
import type { Request } from '../http/request.ts'
import { isConsolePage } from '../domain/console-pages.ts'

/** Placeholder in the built HTML page for the nonce of the content security policy. */
const NONCE = '{{nonce}}'
const NONCE_BYTES = 16
/** Placeholder in the built HTML page for `options.base_path`. */
const BASE_PATH = '{{base-path}}'
/** The beginning of references to files in the built HTML page. Files refer to each other by relative paths. */
const RELATIVE_ASSETS = './assets/'

type ConsoleOptions = Pick<Options, 'console' | 'base_path'>

/** Serves the web console from memory: its pages and files. `docs/console.md: Serving`. */
export class Console {
  readonly #options: () => ConsoleOptions
  #reading: Promise<BuiltConsole | undefined> | undefined

  constructor(options: () => ConsoleOptions) {
    this.#options = options
  }

  /** Whether a request may be for the console, by its method and path. */
  has(method: string, path: string): boolean {
    if (method !== 'GET' && method !== 'HEAD') return false
    return (path.startsWith(ASSETS) || isConsolePage(path)) && this.#options().console
  }

  /**
   * Answers a request. Resolves to false, with nothing sent, if the console has no such file, or if a client of the API requests
   * a page: `/models` is what it asks for if its base URL lacks `/v1`.
   */
  async answer(request: Request, response: Response, path: string): Promise<boolean> {
    const { headers } = request
    const built = await this.#built()
    if (!path.startsWith(ASSETS)) {
      const isForBrowser = headers.accept?.includes('text/html') ?? false
      if (!isForBrowser && keyFromRequest(request, 'any') !== undefined) return false
      sendPage(response, built?.page ?? UNBUILT_PAGE, this.#options().base_path)
      return true
    }
    const file = built?.assets.get(path)
    if (!file) return false
    const encoding = chooseEncoding(headers['accept-encoding'])
    send(response, await file.encoded(encoding), {
      'content-type': file.type,
      ...(encoding !== 'identity' && { 'content-encoding': encoding }),
      'cache-control': 'public, max-age=31536000, immutable',
      'x-content-type-options': 'nosniff',
    })
    return true
  }

  /**
   * Reads the console at the first request. If it has not been built, looks for it again at the next request.
   */
  async #built(): Promise<BuiltConsole | undefined> {
    this.#reading ??= readBuiltConsole()
    try {
      const built = await this.#reading
      if (!built) this.#reading = undefined
      return built
    } catch (error) {
      this.#reading = undefined
      throw error
    }
  }
}

function sendPage(response: Response, page: string, basePath: string): void {
  const nonce = randomBytes(NONCE_BYTES).toString('base64')
  const text = page
    .replaceAll(NONCE, nonce)
    .replaceAll(BASE_PATH, basePath)
    .replaceAll(RELATIVE_ASSETS, basePath + ASSETS)
  send(response, Buffer.from(text), {
    'content-type': 'text/html; charset=utf-8',
    'cache-control': 'no-store',
    'content-security-policy': [
      "default-src 'none'",
      "script-src 'self'",
      `style-src 'self' 'nonce-${nonce}'`,
      "img-src 'self' data: blob:",
      'media-src blob:',
      "connect-src 'self'",
      "form-action 'self'",
      "base-uri 'none'",
      "frame-ancestors 'none'",
    ].join('; '),
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'cross-origin-opener-policy': 'same-origin',
  })
}

function send(response: Response, body: Buffer, headers: ResponseHeaders): void {
  response
    .writeHead(200, { ...headers, 'content-length': String(body.length), vary: 'accept-encoding' })
    .end(body)
}

/** The page shown if the console has not been built. */
const UNBUILT_PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sluice</title>
<style nonce="{{nonce}}">
:root { color-scheme: light dark; font: 14px/1.45 system-ui, sans-serif }
main { max-width: 34rem; margin: 12vh auto; padding: 0 1rem }
code { font: 13px ui-monospace, monospace }
</style>
</head>
<body>
<main>
<h1>Sluice</h1>
<p>The gateway runs. Its console is not built here, because the tools that build it were left out of the installation.</p>
<p>To get it, run <code>npm ci</code> in the folder of the gateway, without <code>--omit=dev</code> and
<code>--ignore-scripts</code>, or <code>npm run console</code> where the tools are there; then reload this page.</p>
<p>To turn this page off, set <code>console: false</code> under <code>options</code> in gateway.yaml.</p>
</main>
</body>
</html>
`

/** Folder of the built console; the path is the same in the source tree and in the package. */
const BUILT = fileURLToPath(new URL('../../console/built', import.meta.url))

/**
 * Compression level of Brotli. Level 10 takes three times as long as 9 and saves 5 % of the size; level 11
 * takes seven times as long as 9.
 */
const BROTLI_QUALITY = 10

const TYPES = new Map([
  ['.js', 'text/javascript; charset=utf-8'],
  ['.css', 'text/css; charset=utf-8'],
  ['.svg', 'image/svg+xml'],
])

const compressBrotli = promisify(brotliCompress)
const compressGzip = promisify(gzip)

/** A file of the console in memory. Each encoding is computed once, in a thread of libuv. */
class BuiltFile {
  readonly type: string
  readonly #bytes: Buffer
  readonly #encoded = new Map<Encoding, Promise<Buffer>>()

  constructor(name: string, bytes: Buffer) {
    this.type = TYPES.get(extname(name)) ?? 'application/octet-stream'
    this.#bytes = bytes
  }

  /** The bytes of the file in a content encoding, such as Brotli. */
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

/** The page and files of the built web console. */
interface BuiltConsole {
  /** HTML page with placeholders for the nonce. */
  readonly page: string
  /** Files by their URL path. */
  readonly assets: ReadonlyMap<string, BuiltFile>
}

/** Reads the built console into memory, without its source maps; undefined if it has not been built. */
async function readBuiltConsole(): Promise<BuiltConsole | undefined> {
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

/**
 * URL prefix of the built files. Each file name contains a hash of the content, so that the files can be
 * cached forever.
 */
const ASSETS = '/assets/'
