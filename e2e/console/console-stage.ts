import { existsSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { startSimulator } from '@sluice/simulator'
import { type DemoUrls, demoYaml } from '../../src/cli/demo-config.ts'
import { type RunningGateway, startGateway } from '../../test/fixtures/gateway.ts'
import { GATEWAY_SECRET } from '../../test/fixtures/program.ts'
import { type ScriptedUpstream, startUpstream } from '../../test/fixtures/scripted-upstream.ts'
import { byTier } from '../../test/runner/tier.ts'
import { deriveSecrets } from '../../src/store/secrets.ts'
import { launchBrowser, sharedBrowser } from './chromium.ts'
import { WORLD_YAML } from './world-catalogue.ts'
import { makeWorld } from './world.ts'

const ROOT = join(import.meta.dirname, '../..')
const BUILT = join(ROOT, 'console/built')

/** The message that a browser logs for every response with an error status; these are not faults. */
export const ANSWERED = /^Failed to load resource: the server responded with a status of/

/** The users that sign in. */
export const PEOPLE = {
  root: { id: 1, accessToken: 'root-access-token-0123456789abcd', key: `sk-${'r'.repeat(48)}` },
  admin: { username: 'bea', password: 'admin password', role: 10 },
  member: { username: 'ann', password: 'member password', role: 1 },
  /** A member with a key. */
  caller: { id: 7, accessToken: 'caller-access-token-0123456789abc', key: `sk-${'c'.repeat(48)}` },
} as const

/** The name of one of these users. */
export type Person = keyof typeof PEOPLE

/** The program with its console, the demo's models behind it, and a browser. */
export interface ConsoleStage {
  readonly gateway: RunningGateway
  /** The upstreams of the channels `scripted`, `first`, `second` and `tired`, each with its own lane. */
  readonly upstream: ScriptedUpstream
  /** Problems that the browser reports: errors in its console, violations of the content security policy. */
  readonly complaints: string[]
  /** Opens a page as a user who is signed in, or without a session. */
  open(person: Person | undefined, path: string, options?: Options): Promise<Page>
  /** Adds sections to the configuration of the running gateway, replacing those added before. */
  declare(sections: string): Promise<void>
  /** Sends a request to the API as root. */
  api<Data>(method: string, path: string, body?: object): Promise<Data>
  /** Makes a call, with root's first key unless another is given, and returns its status. */
  call(model: string, key?: string): Promise<number>
  close(): Promise<void>
}

type ContextOptions = NonNullable<Parameters<Browser['newContext']>[0]>

type Options = ContextOptions & {
  /**
   * Whether neither its context nor the page is used again. A page needs that whose clock is set, which is the clock of
   * its context, whose script runs before those of each page, or that loads the console for the first time.
   */
  readonly isAlone?: boolean
}

const WINDOW = { width: 1280, height: 800 }
/** By day dialogs open and close at once: each picture of a movement costs time. */
const MOTION = byTier('reduce', 'no-preference')

/** The events that tests listen to. */
const EVENTS = [
  'console',
  'dialog',
  'download',
  'framenavigated',
  'pageerror',
  'request',
  'requestfinished',
  'response',
] as const

/**
 * Starts everything; `fresh` has neither channel nor key, as after the first start, `named` has long and Chinese names
 * besides, and `world` three months of calls. `env` is added to the environment of the gateway.
 */
export async function startConsoleStage(
  state: 'filled' | 'fresh' | 'named' | 'world' = 'filled',
  env: Readonly<Record<string, string>> = {},
): Promise<ConsoleStage> {
  if (!existsSync(join(BUILT, 'index.html'))) throw new Error('the console is not built: npm run console')
  await using opened = new AsyncDisposableStack()
  const simulator = opened.adopt(
    await startSimulator({ firstTokenMs: 0, tokenMs: 0, maxWholeMs: 0 }),
    (one) => one.close(),
  )
  const upstream = opened.adopt(await startUpstream(), (one) => one.stop())
  const dataDir = state === 'world' ? await worldFolder(simulator) : undefined
  const filled = `${OPTIONS}${priced(demoYaml(simulator))}${scripted(upstream)}`
  const config = {
    fresh: FRESH,
    filled: `${filled}\n${seeds()}\n`,
    named: `${filled}\n${namedChannels(upstream)}\n${seeds()}${namedUsersAndGuards()}`,
    world: WORLD_YAML,
  }[state]
  const gateway = opened.adopt(
    await startGateway({ config, env, ...(dataDir !== undefined && { dataDir }) }),
    (one) => one.discard(),
  )
  const isTest = process.env['VITEST'] !== undefined
  const browser = isTest ? await sharedBrowser() : opened.adopt(await launchBrowser(), (one) => one.close())
  const stage = opened.adopt(new Stage({ gateway, upstream, browser, config }), (one) => one.closeContexts())
  if (state === 'filled' || state === 'named') await stage.createPeople()
  const everything = opened.move()
  return Object.assign(stage, { close: () => everything.disposeAsync() })
}

/** A data folder with the world, in which root has its usual credentials. */
async function worldFolder(upstreams: DemoUrls): Promise<string> {
  const dataDir = mkdtempSync(join(tmpdir(), 'sluice-world-'))
  const { accessToken, key } = PEOPLE.root
  const root = { accessToken, key: key.slice('sk-'.length) }
  await makeWorld({ dataDir, secrets: deriveSecrets(GATEWAY_SECRET), upstreams, root })
  return dataDir
}

/** The upstreams receive the requests of the tests alone. */
const OPTIONS = 'options: { model_dates: false }\n'

/** Limits that are so high that tests do not reach them. */
const LIMITS = `
rate_limits:
  critical: { requests: 1000, window: 60s }
  console: { requests: 6000, window: 60s }
`

const ROOT_USER = `
users:
  - id: 1
    username: root
    role: 100
    quota: 500000000
    access_token: "${PEOPLE.root.accessToken}"
`

const FRESH = `
options: { model_dates: false, media: { allow_private_networks: true } }
models:
  test-model: { price: { input: 1, output: 2, cache_read: 0.1 } }
${LIMITS}${ROOT_USER}`

/** The demo's configuration with prices for the models of the scripted upstream. */
function priced(yaml: string): string {
  const models = ['scripted', 'shaky', 'tired'].map(
    (model) => `  ${model}: { price: { input: 1, output: 2, cache_read: 0.1 } }\n`,
  )
  return yaml.replace('models:\n', `models:\n${models.join('')}`)
}

/** Channels to the scripted upstream, after those of the demo. */
function scripted(upstream: ScriptedUpstream): string {
  const channel = (lane: string, model: string, priority = 0): string =>
    `  - { name: ${lane}, protocol: chat, base_url: "${upstream.baseUrl(lane)}", keys: [ k ], models: [ ${model} ], priority: ${priority} }`
  return [
    channel('scripted', 'scripted'),
    channel('first', 'shaky', 10),
    channel('second', 'shaky'),
    channel('tired', 'tired'),
  ].join('\n')
}

/**
 * Names that do not fit in a column: with hyphens, in one word, and in Chinese. Each is that of a channel, its model, a
 * user and a key, and of a guard, if a guard may be called so.
 */
export const LONG_NAMES = [
  'anthropic-backup-for-the-batch-jobs-of-research',
  'provisionedthroughputofthesubsidiaryinfrankfurt',
  '用于夜间批量任务的备用渠道华东一区第二可用区',
] as const

function namedChannels(upstream: ScriptedUpstream): string {
  const channel = (name: string): string =>
    `  - { name: ${name}, protocol: chat, base_url: "${upstream.baseUrl('scripted')}", keys: [ k ], models: [ ${name} ] }`
  return LONG_NAMES.map(channel).join('\n')
}

function namedUsersAndGuards(): string {
  const user = (name: string, place: number): string => `
  - id: ${PEOPLE.caller.id + 1 + place}
    username: ${name}
    quota: 5000000
    tokens:
      - { name: ${name}, key: "${`sk-${place}`.padEnd(51, 'n')}", unlimited_quota: true }`
  const guard = (name: string): string => `
  - { name: ${name}, do: redact, match: { words: [ ${name} ] } }`
  return `${LONG_NAMES.map(user).join('')}\nguards:${LONG_NAMES.slice(0, 2).map(guard).join('')}\n`
}

/** Root with a key, and a member with one. */
function seeds(): string {
  return `${LIMITS}${ROOT_USER}
    tokens:
      - { name: first, key: "${PEOPLE.root.key}", unlimited_quota: true }
  - id: ${PEOPLE.caller.id}
    username: cal
    quota: 5000000
    access_token: "${PEOPLE.caller.accessToken}"
    tokens:
      - { name: own, key: "${PEOPLE.caller.key}", unlimited_quota: true }
`
}

class Stage {
  readonly gateway: RunningGateway
  readonly upstream: ScriptedUpstream
  readonly complaints: string[] = []
  readonly #browser: Browser
  readonly #contexts = new Set<BrowserContext>()
  /** Contexts that are used again, by the user and the options. */
  readonly #usual = new Map<string, BrowserContext>()
  /** Pages that tests have closed, by their context. */
  readonly #closed = new WeakMap<BrowserContext, Page[]>()
  readonly #config: string
  /** Cookies of the users who have signed in, because sign-ins are slow. */
  readonly #cookies = new Map<Person, Awaited<ReturnType<BrowserContext['cookies']>>>()

  constructor({
    gateway,
    upstream,
    browser,
    config,
  }: Pick<ConsoleStage, 'gateway' | 'upstream'> & { readonly browser: Browser; readonly config: string }) {
    this.gateway = gateway
    this.upstream = upstream
    this.#browser = browser
    this.#config = config
  }

  async declare(sections: string): Promise<void> {
    const isOwn = sections.startsWith('options:')
    const config = isOwn ? this.#config.replace(OPTIONS, '') : this.#config
    await this.gateway.apply(`${config}\n${sections}\n`)
  }

  async createPeople(): Promise<void> {
    for (const { username, password, role } of [PEOPLE.admin, PEOPLE.member])
      await this.api('POST', '/api/user/', { username, password, role, quota: 5_000_000 })
  }

  async open(person: Person | undefined, path: string, options: Options = {}): Promise<Page> {
    const { isAlone = false, viewport = WINDOW, colorScheme, reducedMotion, ...others } = options
    const context = isAlone
      ? await this.#newContext({ viewport, ...others })
      : await this.#usualContext(person, others)
    // Another page of the context may be sending requests.
    if (this.#isAtRest(context)) await context.clearCookies()
    if (person !== undefined) await context.addCookies(await this.#cookiesOf(person))
    const page = isAlone ? await context.newPage() : await this.#usualPage(context)
    if (viewport) await page.setViewportSize(viewport)
    await page.emulateMedia({ colorScheme: colorScheme ?? null, reducedMotion: reducedMotion ?? MOTION })
    page.on('console', (message) => {
      if (message.type() === 'error' && !ANSWERED.test(message.text())) this.complaints.push(message.text())
    })
    page.on('pageerror', ({ message }) => this.complaints.push(message))
    await page.goto(path)
    return page
  }

  async api<Data>(method: string, path: string, body?: object): Promise<Data> {
    const answer = await fetch(`${this.gateway.url}${path}`, {
      method,
      headers: {
        authorization: PEOPLE.root.accessToken,
        'gateway-user': '1',
        'content-type': 'application/json',
      },
      ...(body && { body: JSON.stringify(body) }),
    })
    const { success, message, data } = (await answer.json()) as {
      success: boolean
      message: string
      data: Data
    }
    if (!success) throw new Error(`${method} ${path}: ${message}`)
    return data
  }

  async call(model: string, key: string = PEOPLE.root.key): Promise<number> {
    const answer = await fetch(`${this.gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello' }] }),
    })
    await answer.text()
    return answer.status
  }

  /** Closes what tests have left open in the browser. */
  async closeContexts(): Promise<void> {
    for (const context of this.#contexts) await context.close()
  }

  /** A context that keeps the compiled console from page to page. Two pages without a user do not share one. */
  async #usualContext(person: Person | undefined, options: ContextOptions): Promise<BrowserContext> {
    const key = JSON.stringify([person, options])
    const known = this.#usual.get(key)
    if (known && (person !== undefined || this.#isAtRest(known))) return known
    const context = await this.#newContext(options)
    this.#usual.set(key, context)
    return context
  }

  /** Whether tests have closed all pages of a context. */
  #isAtRest(context: BrowserContext): boolean {
    return context.pages().length === (this.#closed.get(context)?.length ?? 0)
  }

  /** A page that is kept when a test closes it, because its process has compiled the console. */
  async #usualPage(context: BrowserContext): Promise<Page> {
    const closed = this.#closed.get(context) ?? []
    this.#closed.set(context, closed)
    const known = closed.pop()
    if (known) {
      await forget(known)
      return known
    }
    const isFirst = context.pages().length === 0
    const page = await context.newPage()
    if (!isFirst) {
      await page.goto(AT_REST)
      await forget(page)
    }
    page.close = async () => {
      for (const event of EVENTS) page.removeAllListeners(event)
      await page.unrouteAll({ behavior: 'ignoreErrors' })
      await page.goto(AT_REST)
      if (!closed.includes(page)) closed.push(page)
    }
    return page
  }

  async #newContext(options: ContextOptions): Promise<BrowserContext> {
    const context = await this.#browser.newContext({
      baseURL: this.gateway.url,
      locale: 'en-US',
      timezoneId: 'Europe/Berlin',
      ...options,
    })
    context.setDefaultTimeout(60_000)
    this.#contexts.add(context)
    context.once('close', () => this.#contexts.delete(context))
    return context
  }

  async #cookiesOf(person: Person) {
    const known = this.#cookies.get(person)
    if (known) return known
    const who = PEOPLE[person]
    const credentials =
      'accessToken' in who
        ? { access_token: who.accessToken }
        : { username: who.username, password: who.password }
    const context = await this.#newContext({})
    const { request } = context
    const answer = await request.post('/api/user/login', { data: credentials })
    if (!answer.ok()) throw new Error(`${person} cannot sign in: ${await answer.text()}`)
    const cookies = await context.cookies()
    this.#cookies.set(person, cookies)
    await context.close()
    return cookies
  }
}

/** A path of the origin that runs no script. */
const AT_REST = '/healthz'

/** Removes what earlier pages stored, seen from a page at rest. */
async function forget(page: Page): Promise<void> {
  await page.evaluate(() => {
    localStorage.clear()
    sessionStorage.clear()
  })
}

/** Makes a page read a list again, as it does when its window gets the focus after a while. */
export async function readAgain(page: Page, path: string): Promise<void> {
  await page.clock.setFixedTime(Date.now() + 60_000)
  const answer = page.waitForResponse((one) => new URL(one.url()).pathname === path)
  await page.evaluate(() => window.dispatchEvent(new Event('visibilitychange')))
  await (await answer).finished()
}
