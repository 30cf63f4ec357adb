import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { CONTINUE, Llhttp, type ParserCallbacks } from './llhttp.ts'

const VENDOR = new URL('./vendor/llhttp/', import.meta.url)
const module = readFileSync(new URL('llhttp.wasm', VENDOR))
const origin = JSON.parse(readFileSync(new URL('origin.json', VENDOR), 'utf8')) as Record<string, string>
const licence = readFileSync(new URL('LICENSE', VENDOR), 'utf8')

describe('the vendored parser', () => {
  test('the vendored HTTP parser is the recorded llhttp module, with its version, licence and the package that published it', () => {
    expect(hash('sha256', module)).toBe(origin['sha256'])
    expect(origin).toMatchObject({
      name: 'llhttp',
      version: expect.stringMatching(/^\d+\.\d+\.\d+$/),
      license: 'MIT',
      package: expect.any(String),
      packageVersion: expect.stringMatching(/^\d+\.\d+\.\d+$/),
      packageIntegrity: expect.stringMatching(/^sha512-.{86}==$/),
    })
    expect(licence).toMatch(/^MIT License\n\nCopyright .* Fedor Indutny\n/)
  })

  test('the vendored HTTP parser imports only its callbacks: no files, clock or network', () => {
    const { imports } = WebAssembly.Module as unknown as {
      imports: (module: WebAssembly.Module) => readonly { readonly module: string; readonly name: string }[]
    }
    const needed = imports(new WebAssembly.Module(module))
    expect(needed.map(({ module: from, name }) => `${from}.${name}`).toSorted()).toEqual([
      'env.wasm_on_body',
      'env.wasm_on_header_field',
      'env.wasm_on_header_value',
      'env.wasm_on_headers_complete',
      'env.wasm_on_message_begin',
      'env.wasm_on_message_complete',
      'env.wasm_on_status',
      'env.wasm_on_url',
    ])
  })

  test('the vendored HTTP parser parses a request', () => {
    const bytes = Buffer.from('POST /v1 HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\nhi')
    const texts: string[] = []
    const note = (start: number, end: number): number => {
      texts.push(bytes.toString('latin1', start, end))
      return CONTINUE
    }
    const callbacks: ParserCallbacks = {
      onMessageBegin: () => CONTINUE,
      onTarget: note,
      onStatus: note,
      onHeaderName: note,
      onHeaderValue: note,
      onHeadersComplete: () => CONTINUE,
      onBody: note,
      onMessageComplete: () => CONTINUE,
    }
    const parser = new Llhttp('requests', callbacks)
    expect(parser.parse(bytes, 0, bytes.length)).toBe('all')
    expect(texts).toEqual(['/v1', 'host', 'a', 'content-length', '2', 'hi'])
    parser.free()
  })
})
