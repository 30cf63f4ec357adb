import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import process from 'node:process'
import { pathToFileURL } from 'node:url'
import { textTool } from '@sluice/simulator'
import { MCP_VERSIONS } from '../../src/domain/mcp.ts'
import { plainConfiguration, token, user } from '../../test/fixtures/configuration.ts'
import { startFixture } from '../../test/fixtures/fixture.ts'
import { startMcpServer } from '../../test/fixtures/mcp.ts'

// The packages are installed in this folder alone, so that their types are not known where this is checked.
interface OfficialClient {
  connect(transport: unknown): Promise<void>
  close(): Promise<void>
  listTools(): Promise<{ readonly tools: readonly { readonly name: string }[] }>
  listPrompts(): Promise<{ readonly prompts: readonly { readonly name: string }[] }>
  getPrompt(params: object): Promise<{ readonly messages: readonly unknown[] }>
  readResource(params: object): Promise<{ readonly contents: readonly unknown[] }>
  callTool(
    params: object,
    ...options: unknown[]
  ): Promise<{ readonly content: unknown; readonly isError?: boolean }>
}
interface OfficialModule {
  readonly Client: new (info: object, options?: object) => OfficialClient
  readonly StreamableHTTPClientTransport: new (
    url: URL,
    options: object,
  ) => {
    readonly protocolVersion?: string
  }
}

const require = createRequire(join(import.meta.dirname, 'package.json'))
const load = async (name: string): Promise<OfficialModule> =>
  (await import(pathToFileURL(require.resolve(name)).href)) as OfficialModule

/** Uses the gateway with each official client over each kind of server. Resolves to the number of failures. */
export async function useClients(): Promise<number> {
  const second = await load('@modelcontextprotocol/client')
  const { Client } = await load('@modelcontextprotocol/sdk/client/index.js')
  const { StreamableHTTPClientTransport } = await load('@modelcontextprotocol/sdk/client/streamableHttp.js')
  const first = { Client, StreamableHTTPClientTransport }
  /** Each official client, with the revision and the options that make it speak that. */
  const clients = [
    ['client 2', second, '2026-07-28', { versionNegotiation: { mode: { pin: '2026-07-28' } } }],
    ['client 2, automatic', second, '2026-07-28', { versionNegotiation: { mode: 'auto' } }],
    ['client 2', second, '2025-11-25', {}],
    ['client 2', second, '2025-06-18', { supportedProtocolVersions: ['2025-06-18'] }],
    ['sdk 1', first, '2025-11-25', {}],
  ] as const
  let failures = 0
  for (const version of MCP_VERSIONS)
    for (const [name, official, revision, options] of clients) {
      const what = `${name}, ${revision}, server ${version}`
      try {
        await use(official, options, version, revision)
        process.stdout.write(`✓ ${what}\n`)
      } catch (error) {
        failures += 1
        process.stdout.write(`✗ ${what}: ${String(error)}\n`)
      }
    }
  return failures
}

/** Uses everything that a client can, over a server of a revision. */
async function use(
  { Client, StreamableHTTPClientTransport }: OfficialModule,
  options: object,
  version: string,
  revision: string,
): Promise<void> {
  const server = await startMcpServer({
    name: 'files',
    versions: [version],
    tools: () => [
      textTool({ name: 'read', description: 'reads' }, (given) => {
        given.notify('notifications/progress', { progress: 1, total: 2 })
        return 'content'
      }),
    ],
    prompts: [
      {
        definition: { name: 'ask', description: 'asks' },
        answer: () => ({ messages: [{ role: 'user', content: { type: 'text', text: 'hi' } }] }),
      },
    ],
    resources: [
      {
        definition: { uri: 'file:///a', name: 'a' },
        answer: () => ({ contents: [{ uri: 'file:///a', text: 'a' }] }),
      },
    ],
  })
  const fixture = await startFixture((upstream) => {
    const plain = plainConfiguration(upstream.baseUrl('m'))
    return {
      ...plain,
      users: [...plain.users, user(9, 'poor', [token('poor', { remain_quota: 10 })])],
      mcp: { servers: [{ name: 'files', url: server.url, price: { call: 0.001 } }] },
    }
  })
  const connected = async (key: string): Promise<OfficialClient> => {
    const client = new Client({ name: 'test', version: '1' }, options)
    const headers = { authorization: `Bearer sk-${key}` }
    const transport = new StreamableHTTPClientTransport(new URL(`${fixture.gateway.url}/mcp`), {
      requestInit: { headers },
    })
    await client.connect(transport)
    assert.equal(transport.protocolVersion, revision)
    return client
  }
  try {
    const client = await connected('ann')
    assert.deepEqual(
      (await client.listTools()).tools.map(({ name }) => name),
      ['files_read'],
    )
    const result = await client.callTool({ name: 'files_read', arguments: {} })
    assert.deepEqual(result.content, [{ type: 'text', text: 'content' }])
    assert.deepEqual(
      (await client.listPrompts()).prompts.map(({ name }) => name),
      ['files_ask'],
    )
    assert.equal((await client.getPrompt({ name: 'files_ask' })).messages.length, 1)
    assert.equal((await client.readResource({ uri: 'file:///a' })).contents.length, 1)
    await assert.rejects(client.callTool({ name: 'files_none', arguments: {} }), /Unknown tool: files_none/)
    await client.close()
    const poor = await connected('poor')
    // Clients show the gateway's own message and the code of the refusal.
    await assert.rejects(poor.callTool({ name: 'files_read', arguments: {} }), (error: Error) => {
      const { code, data } = error as unknown as { code: unknown; data: { code: unknown } }
      assert.equal(code, 403)
      assert.equal(data.code, 'insufficient_quota')
      assert.match(error.message, /request id/)
      return true
    })
    await poor.close()
  } finally {
    await fixture.close()
    await server.close()
  }
}
