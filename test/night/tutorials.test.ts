import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import type { Server } from 'node:http'
import { dirname, join } from 'node:path'
import process from 'node:process'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { chatUpstream, messagesUpstream, PromptCache, serveUpstream } from '@sluice/simulator'
import { familyDatabase } from '../stores/family-database.ts'
import { ENGINES } from '../stores/engines.ts'
import { missingLines, type TutorialBlock, tutorialBlocks } from '../operations/tutorial-page.ts'
import { isInstalled, runTutorial, type TutorialRun } from '../operations/tutorial-run.ts'

const ROOT = join(import.meta.dirname, '../..')
const FOLDER = join(ROOT, 'docs/tutorials')
const PACE = { firstTokenMs: 0, tokenMs: 0, maxWholeMs: 0 }
/** Programs without which a page cannot be run, in addition to those that every page needs. */
const NEEDED: Readonly<Record<string, readonly string[]>> = {
  'behind-tls-proxy.md': ['nginx', 'openssl'],
  'prometheus-grafana.md': ['openssl'],
}
const ALWAYS_NEEDED = ['bash', 'curl']

const pageOf = (name: string): string => readFileSync(join(FOLDER, name), 'utf8')
const PAGES = readdirSync(FOLDER).filter((name) => name.endsWith('.md') && name !== 'README.md')

/** Addresses on the pages, and the local servers that replace them. */
const replacements = new Map<string, string>()
const servers: Server[] = []
beforeAll(async () => {
  const vendors = [
    ['https://api.openai.com/v1', chatUpstream(['gpt-5.4-mini', 'gpt-5.4'], new PromptCache())],
    ['https://openrouter.ai/api/v1', chatUpstream(['openai/gpt-5.4-mini'], new PromptCache())],
    [
      'https://api.anthropic.com/v1',
      messagesUpstream(['claude-sonnet-4-6', 'claude-haiku-4-5'], new PromptCache()),
    ],
  ] as const
  for (const [address, upstream] of vendors) {
    const { url, server } = await serveUpstream(upstream, PACE)
    replacements.set(address, url)
    servers.push(server)
  }
})
afterAll(() => {
  for (const server of servers) server.close().closeAllConnections()
})

/** Runs a tutorial. */
function run(name: string): Promise<TutorialRun> {
  return runBlocks(tutorialBlocks(pageOf(name)))
}

/** Runs blocks; each command must succeed, and each output block must match. */
async function runBlocks(given: readonly TutorialBlock[]): Promise<TutorialRun> {
  const blocks = given.filter(isRunnable)
  const result = await runTutorial(blocks, replacements)
  onTestFinished(() => result.discard())
  expect(result.code, result.report).toBe(0)
  for (const [i, block] of blocks.entries()) {
    if (block.kind !== 'output') continue
    const missing = missingLines(block.text, result.outputs[i - 1] ?? '')
    expect(missing, result.report).toEqual([])
  }
  return result
}

function isRunnable(block: TutorialBlock): boolean {
  if (block.kind !== 'run' || block.needs === undefined || isInstalled(block.needs)) return true
  console.log(`a block of a tutorial is left out: ${block.needs} is not installed`)
  return false
}

/**
 * Whether to leave a page out because a program is not installed; prints which. Where results are counted
 * (`CI=true`), the page is run and fails instead.
 */
function isLeftOut(name: string): boolean {
  const missing = [...ALWAYS_NEEDED, ...(NEEDED[name] ?? [])].find((program) => !isInstalled(program))
  if (missing === undefined) return false
  console.log(`${name} is left out: ${missing} is not installed`)
  return process.env['CI'] !== 'true'
}

test('each tutorial is listed on the page of tutorials', () => {
  expect(PAGES.length).toBeGreaterThanOrEqual(5)
  expect(PAGES.filter((name) => !pageOf('README.md').includes(`(${name})`))).toEqual([])
})

describe('commands of the tutorials', () => {
  const pages = PAGES.filter((name) => name !== 'upgrading.md' && name !== 'prometheus-grafana.md')
  test.for(pages)(
    'the commands of a tutorial print the output that the tutorial shows: %s',
    async (name, { skip }) => {
      skip(isLeftOut(name))
      await run(name)
    },
  )

  test('the commands of prometheus-grafana.md print the output that the page shows', async ({ skip }) => {
    skip(isLeftOut('prometheus-grafana.md'))
    const result = await run('prometheus-grafana.md')
    const exported = new Set(
      [...result.file('metrics.txt').matchAll(/^# TYPE (\w+)/gm)].map(([, name]) => name),
    )
    expect(exported.size).toBeGreaterThan(15)
    const texts = { alerts: result.file('alerts.yml'), dashboard: pageOf('grafana-dashboard.json') }
    for (const [where, text] of Object.entries(texts)) {
      const named = [...new Set(text.match(/\bsluice_\w+/g))]
      expect(named.length, where).toBeGreaterThan(5)
      const unknown = named.filter((name) => !exported.has(name.replace(/_(?:bucket|sum|count)$/, '')))
      expect(unknown, where).toEqual([])
    }
  })

  test('the commands of upgrading.md print the output that the page shows', async ({ skip }) => {
    const postgres = ENGINES.find(({ name }) => name === 'PostgreSQL')
    if (!postgres) console.log('upgrading.md is left out: there is no PostgreSQL server')
    skip(!postgres || isLeftOut('upgrading.md'))
    const database = await postgres?.database()
    replacements.set('postgres://sluice@db.example.com/sluice', database?.place ?? '')
    await run('upgrading.md')
  })
})

/** Additional commands before those of a page. */
function commands(text: string): TutorialBlock {
  return { kind: 'run', needs: undefined, text }
}

/** Starts a gateway with one channel, as the process `GATEWAY`. */
const GATEWAY_RUNS: readonly TutorialBlock[] = [
  {
    kind: 'file',
    name: 'gateway.yaml',
    text: `channels:
  - { name: openai, protocol: chat, base_url: "https://api.openai.com/v1", keys: [sk-a-key], models: [gpt-5.4-mini] }
`,
  },
  commands(`sluice start > gateway.log 2>&1 &
GATEWAY=$!
until curl -sf http://127.0.0.1:3000/readyz > ready.txt; do sleep 0.1; done`),
]

describe('commands of the other pages', () => {
  const blocksOf = (name: string): TutorialBlock[] => tutorialBlocks(readFileSync(join(ROOT, name), 'utf8'))

  test('the commands of README.md print the output that the page shows', async ({ skip }) => {
    skip(isLeftOut('README.md'))
    const result = await runBlocks([
      {
        kind: 'background',
        ready: 'http://127.0.0.1:3000/readyz',
        text: 'DATA_DIR=demo sluice demo | tee demo.log',
      },
      commands(`until SLUICE_KEY=$(grep -om 1 'sk-[0-9A-Za-z]*' demo.log); do sleep 0.1; done`),
      ...blocksOf('README.md'),
    ])
    expect(result.outputs.join('')).toContain('"object":"chat.completion"')
  })

  test('the commands of docs/operations.md print the output that the page shows', async ({ skip }) => {
    skip(isLeftOut('docs/operations.md'))
    replacements.set('/backups', 'backups')
    const blocks = blocksOf('docs/operations.md')
    const restoring = blocks.findIndex(({ text }) => text.startsWith('cp /backups'))
    expect(restoring).toBeGreaterThan(0)
    const result = await runBlocks([
      ...GATEWAY_RUNS,
      // The page refers to a key with the number 7, a second user, and a channel that was created over HTTP.
      commands(`mkdir backups
sluice user create bob
for name in 2 3 4 5 6; do sluice token create --user root --name "$name" --unlimited; done
curl -sS --fail-with-body http://127.0.0.1:3000/api/channel/ -H "authorization: $(sluice user access-token root)" \
  -H 'gateway-user: 1' -H 'content-type: application/json' -d '{
  "name": "spare", "type": 1, "key": "sk-a-key", "models": "gpt-5.4-mini", "base_url": "https://api.openai.com/v1"}'`),
      ...blocks.slice(0, restoring),
      commands(`sluice user create carl
kill "$GATEWAY" && wait "$GATEWAY"
mv backups/sluice-*.db backups/sluice-2026-11-20.db`),
      ...blocks.slice(restoring),
      commands('sluice user list'),
    ])
    expect(result.outputs.at(-1)).toContain('ann')
    // The restored copy is older.
    expect(result.outputs.at(-1)).not.toContain('carl')
  })

  test('the commands of docs/administration.md print the output that the page shows', async ({ skip }) => {
    skip(isLeftOut('docs/administration.md'))
    const result = await runBlocks([
      ...GATEWAY_RUNS.map((block) => ({ ...block, text: block.text.replace('openai,', 'other,') })),
      commands('ACCESS_TOKEN=$(sluice user access-token root)'),
      ...blocksOf('docs/administration.md'),
    ])
    const [first = '', second = ''] = result.outputs.slice(-2)
    expect(first.match(/"success":(?:true|false)/g), first).toEqual(Array(3).fill('"success":true'))
    expect(second).toContain('"code":"changed_meanwhile"')
  })

  test('the commands of docs/moving.md print the output that the page shows', async ({ skip }) => {
    const postgres = ENGINES.find(({ name }) => name === 'PostgreSQL')
    if (!postgres) console.log('docs/moving.md is left out: there is no PostgreSQL server')
    skip(!postgres || isLeftOut('docs/moving.md'))
    const source = await familyDatabase('new-api', 'SQLite')
    await source.insert('users', { id: 2, username: 'ann', password: '', role: 1, status: 1, quota: 500 })
    replacements.set('/srv/new-api/one-api.db', source.place)
    const proxy = join(dirname(source.place), 'config.yaml')
    writeFileSync(
      proxy,
      'model_list:\n  - model_name: m\n    litellm_params: { model: openai/gpt-5.4-mini, api_key: k }\n',
    )
    replacements.set('/srv/litellm/config.yaml', proxy)
    const target = await postgres?.database()
    replacements.set('postgres://sluice@db.example.com/sluice', target?.place ?? '')
    const result = await runBlocks([...blocksOf('docs/moving.md'), commands('sluice user list')])
    expect(result.outputs.at(-1)).toContain('ann')
    expect(await target?.sql('select username from users')).toContainEqual({ username: 'ann' })
  })

  test('no page of the documentation has commands that these tests could run but do not', () => {
    const others = readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' }).filter(
      (path) =>
        path.endsWith('.md') &&
        !path.startsWith('tutorials/') &&
        !['operations.md', 'administration.md', 'moving.md'].includes(path),
    )
    expect(others.length).toBeGreaterThan(10)
    expect(others.filter((path) => blocksOf(join('docs', path)).length > 0)).toEqual([])
  })
})

describe('configurations on pages', () => {
  test.for(['README.md', 'docs/configuration.md', 'docs/recipes/add-an-upstream.md'])(
    'the example configurations on a page of the documentation are accepted by sluice check: %s',
    async (name) => {
      const page = readFileSync(join(ROOT, name), 'utf8')
      const files = [...page.matchAll(/^```yaml\n([\s\S]*?)^```$/gm)]
        .map(([, text = '']) => text)
        .filter((text) => text.includes('channels:'))
      expect(files.length).toBeGreaterThan(0)
      for (const text of files) {
        const keys = [...text.matchAll(/\$\{(\w+)\}/g)].map(([, variable]) => `${variable}=a-key`)
        const blocks: TutorialBlock[] = [
          { kind: 'file', name: 'gateway.yaml', text },
          commands(`${keys.join(' ')} sluice check`),
        ]
        const result = await runTutorial(blocks, new Map())
        result.discard()
        expect(result.code, result.report).toBe(0)
      }
    },
  )
})

describe('expected outputs', () => {
  test('the test of tutorials detects an output that lacks a line of the page', () => {
    expect(missingLines('one\ntwo\n', 'a one\n')).toEqual(['two'])
  })

  test('the test of tutorials accepts any text where the output on the page has an ellipsis', () => {
    expect(missingLines('sum{a="b"} …\n', 'sum{a="b"} 7\n')).toEqual([])
  })
})
