import { readdirSync, readFileSync } from 'node:fs'
import type { Server } from 'node:http'
import { join } from 'node:path'
import process from 'node:process'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { chatUpstream } from '../../src/simulator/chat.ts'
import { messagesUpstream } from '../../src/simulator/messages.ts'
import { PromptCache } from '../../src/simulator/prompt-cache.ts'
import { serve } from '../../src/simulator/server.ts'
import { ENGINES } from '../store-engines.ts'
import { missingLines, type TutorialBlock, tutorialBlocks } from './tutorial-page.ts'
import { isInstalled, runTutorial, type TutorialRun } from './tutorial-run.ts'

const FOLDER = join(import.meta.dirname, '../../docs/tutorials')
const PACE = { firstTokenMs: 0, tokenMs: 0, maxWholeMs: 0 }
/** Programs without which a page cannot be run, beside those that every page needs. */
const NEEDED: Readonly<Record<string, readonly string[]>> = {
  'behind-tls-proxy.md': ['nginx', 'openssl'],
  'prometheus-grafana.md': ['openssl'],
}
const ALWAYS_NEEDED = ['bash', 'curl']

const pageOf = (name: string): string => readFileSync(join(FOLDER, name), 'utf8')
const PAGES = readdirSync(FOLDER).filter((name) => name.endsWith('.md') && name !== 'README.md')

/** Addresses of the pages, and the local servers in their place. */
const replacements = new Map<string, string>()
const servers: Server[] = []
beforeAll(async () => {
  const vendors = [
    ['https://api.openai.com/v1', chatUpstream(['gpt-4o-mini'], new PromptCache())],
    ['https://openrouter.ai/api/v1', chatUpstream(['openai/gpt-4o-mini'], new PromptCache())],
    [
      'https://api.anthropic.com/v1',
      messagesUpstream(['claude-sonnet-4-5', 'claude-haiku-4-5'], new PromptCache()),
    ],
  ] as const
  for (const [address, upstream] of vendors) {
    const { url, server } = await serve(upstream, PACE)
    replacements.set(address, url)
    servers.push(server)
  }
})
afterAll(() => {
  for (const server of servers) server.close().closeAllConnections()
})

/** Runs a page; each command has to succeed, and each output block to match. */
async function run(name: string): Promise<TutorialRun> {
  const blocks = tutorialBlocks(pageOf(name)).filter(isRunnable)
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
 * Whether to leave a page out, because a program is not installed; prints which. Where results are counted
 * (`CI=true`), the page runs and fails instead.
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

describe('the commands of a tutorial do what it says:', () => {
  const pages = PAGES.filter((name) => name !== 'upgrading.md' && name !== 'prometheus-grafana.md')
  test.for(pages)('%s', async (name, { skip }) => {
    skip(isLeftOut(name))
    await run(name)
  })

  test('prometheus-grafana.md', async ({ skip }) => {
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

  test('upgrading.md', async ({ skip }) => {
    const postgres = ENGINES.find(({ name }) => name === 'PostgreSQL')
    if (!postgres) console.log('upgrading.md is left out: there is no PostgreSQL server')
    skip(!postgres || isLeftOut('upgrading.md'))
    const database = await postgres?.database()
    replacements.set('postgres://sluice@db.example.com/sluice', database?.place ?? '')
    await run('upgrading.md')
  })
})

describe('the configuration on a page is accepted by sluice check:', () => {
  const root = join(FOLDER, '../..')
  test.for(['README.md', 'docs/configuration.md', 'docs/recipes/add-an-upstream.md'])('%s', async (name) => {
    const page = readFileSync(join(root, name), 'utf8')
    const files = [...page.matchAll(/^```yaml\n([\s\S]*?)^```$/gm)]
      .map(([, text = '']) => text)
      .filter((text) => text.includes('channels:'))
    expect(files.length).toBeGreaterThan(0)
    for (const text of files) {
      const keys = [...text.matchAll(/\$\{(\w+)\}/g)].map(([, variable]) => `${variable}=a-key`)
      const blocks: TutorialBlock[] = [
        { kind: 'file', name: 'gateway.yaml', text },
        { kind: 'run', needs: undefined, text: `${keys.join(' ')} sluice check` },
      ]
      const result = await runTutorial(blocks, new Map())
      result.discard()
      expect(result.code, result.report).toBe(0)
    }
  })
})

describe('an output', () => {
  test('that lacks a line is noticed', () => {
    expect(missingLines('one\ntwo\n', 'a one\n')).toEqual(['two'])
  })

  test('may have any text in place of an ellipsis', () => {
    expect(missingLines('sum{a="b"} …\n', 'sum{a="b"} 7\n')).toEqual([])
  })
})
