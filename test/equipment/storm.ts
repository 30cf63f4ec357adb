import { generateKeyPairSync } from 'node:crypto'
import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { startBedrockFront } from './bedrock-front.ts'
import { ACCOUNT, REGION } from './providers/bedrock.ts'
import { auditBooks, booksIn, type GrantedQuotas, type Observation } from './auditor.ts'
import { auditBudgets } from './budget-audit.ts'
import type { LiveResponse } from './client.ts'
import { channel, type Configuration, ROOT, token, user } from './configuration.ts'
import { databaseOf } from './database.ts'
import { auditDeliveries, type Deliveries, type Sent } from './deliveries.ts'
import { startGateway } from './gateway.ts'
import { randomFrom } from './random.ts'
import { dialectChannels } from './dialect-traffic.ts'
import { MEDIA_MODELS } from './media-traffic.ts'
import { hangDisk } from './slow-disk.ts'
import { type ScriptedUpstream, startUpstream } from './scripted-upstream.ts'
import { workerPids } from './worker-pids.ts'
import { CONTENT, type ObservedCall, sentBy, serveTraffic, startTraffic, TRAFFIC_MODEL } from './traffic.ts'

/** Options of a storm. */
export interface StormPlan {
  readonly seed: number
  readonly rounds: number
  readonly clients: number
  /** The program's folder, if it is not the repository's. */
  readonly root?: string
  /** Additional environment variables of the program. */
  readonly env?: Readonly<Record<string, string>>
  /**
   * Whether the program runs with `HANGING_DISK`. Each kill then happens while the disk hangs, once something
   * that is not durable was delivered, or all upstreams have answered and nothing more is delivered.
   */
  readonly hasHangingDisk?: boolean
  /**
   * The number of worker processes. In each round one of them is killed, some time before the whole program.
   */
  readonly workers?: number
  /** The provider of the channel for conversations; other calls go to a channel without one. */
  readonly provider?: 'bedrock' | 'vertex'
}

/** The result of a storm, and the upstreams' work. */
export interface StormReport extends Omit<Deliveries, 'broken'> {
  /** Broken promises; empty if every promise held. */
  readonly broken: readonly string[]
  readonly requests: number
  readonly complete: number
  readonly partial: number
  readonly refused: number
  /** The number of responses whose hold was checked for durability when their first content arrived. */
  readonly checkedStreams: number
  /** The number of calls that the provider's channel answered. */
  readonly provided: number
  /** The number of charged calls by their kind in the usage log. */
  readonly kinds: Readonly<Record<string, number>>
}

const QUOTA = 1_000_000_000
/** A quota that is used up during the storm. */
const SCARCE = 6_000
/** A budget that is used up before this quota. */
const LESS = { budget: 4_000, budget_period: 'week' }
/**
 * The number of complete responses before a round may end, and the maximum of its random extra time in
 * milliseconds. Every tenth round is ten times as long, and lasts until some clients that left were charged,
 * because counting their responses takes a while.
 */
const ANSWERS = 25
const LONGEST_MS = 350
/**
 * Maximum milliseconds between the kill of a worker and that of the whole program: starting a new worker
 * takes about a second.
 */
const LONGEST_LOSS_MS = 3_000
/**
 * Milliseconds between two words of a response when the disk is to hang: at any moment, there are many
 * streams whose holds are durable and whose charges are not yet written.
 */
const HANGING_PACE_MS = 25
/** Milliseconds without a delivery, after all upstreams have answered, that end a round on a hanging disk. */
const QUIET_MS = 1_000
/** The number of clients that must have left and been charged in each tenth round. */
const LEFT = 5
/** The share of streams whose first content is checked against the file. */
const CHECKED_SHARE = 0.2
const KEYS = ['calm', 'windy', 'scarce']

/**
 * Runs rounds: clients call in every way, the gateway is killed with SIGKILL under load and started again on
 * the same data directory, and its database is compared with the clients' records. Stops at the first round
 * that breaks a promise.
 */
export async function storm(plan: StormPlan): Promise<StormReport> {
  const random = randomFrom(plan.seed)
  const upstream = await startUpstream()
  const front =
    plan.provider === 'bedrock' ? await startBedrockFront(upstream.baseUrl(TRAFFIC_MODEL)) : undefined
  const gateway = await startGateway({
    config: configuration(upstream, plan.provider, front?.url),
    env: { LOG_LEVEL: 'warn', ...(plan.workers && { WORKERS: String(plan.workers) }), ...plan.env },
    ...(plan.root === undefined ? {} : { root: plan.root }),
  })
  const seen: ObservedCall[] = []
  const sent: Sent[] = []
  const gateOne = new HoldCheck(gateway.dataDir)
  const witness = async (live: LiveResponse): Promise<void> => {
    if (plan.hasHangingDisk || random() < CHECKED_SHARE) await gateOne.check(live)
  }
  let broken: readonly string[] = []
  let provided = 0
  let kinds: StormReport['kinds'] = {}
  let deliveries: Omit<Deliveries, 'broken'> = { sent: 0, charged: 0, excepted: {} }
  try {
    for (let round = 0; round < plan.rounds && broken.length === 0; round++) {
      const traffic = startTraffic({
        urls: [gateway.url],
        clientsEach: plan.clients,
        keys: KEYS,
        random,
        observations: seen,
        onStream: witness,
        hasAllEndpoints: true,
        isConverted: plan.provider === 'bedrock',
        lacksEmbeddings: plan.provider === 'vertex',
        ...(plan.hasHangingDisk && { minPaceMs: HANGING_PACE_MS }),
      })
      if (plan.hasHangingDisk) {
        await untilUnderWay(seen, ANSWERS)
        const disk = hangDisk(gateway.dataDir)
        await untilDelivered(gateway.dataDir, seen, gateOne, upstream)
        await gateway.kill()
        disk.free()
      } else {
        await untilUnderWay(seen, round % 10 === 0 ? 10 * ANSWERS : ANSWERS)
        if (round % 10 === 0) await untilLeft(gateway.dataDir)
        await sleep(random() * LONGEST_MS)
        if (plan.workers !== undefined) await killWorker(gateway.pid, random)
        await gateway.kill()
      }
      await traffic.stop()
      await gateway.restart()
      sent.push(...sentBy(upstream))
      upstream.forget(TRAFFIC_MODEL)
      const books = booksIn(gateway.dataDir)
      const usage = databaseOf(gateway.dataDir).usage()
      provided = usage.filter(({ channel: name }) => name === plan.provider).length
      kinds = countsOf(usage.map(({ kind }) => kind))
      const { broken: unpaid, ...paid } = auditDeliveries(books, seen, sent)
      deliveries = paid
      const file = databaseOf(gateway.dataDir)
      const unbudgeted = auditBudgets(file.budgets(), file.usage())
      broken = [...auditBooks(books, seen, GRANTED), ...gateOne.untraced, ...unpaid, ...unbudgeted]
    }
  } finally {
    await gateway.discard()
    await front?.close()
    await upstream.stop()
  }
  return {
    broken,
    checkedStreams: gateOne.checked,
    provided,
    kinds,
    ...deliveries,
    requests: seen.length,
    complete: seen.filter(({ status, complete }) => status === 200 && complete).length,
    partial: seen.filter(({ sawContent, complete }) => sawContent && !complete).length,
    refused: seen.filter(({ status }) => status >= 400).length,
  }
}

const GRANTED: GrantedQuotas = {
  tokens: new Map([
    ['token-calm', QUOTA],
    ['token-windy', QUOTA],
    ['token-scarce', SCARCE],
  ]),
  users: new Map([
    ['ann', QUOTA],
    ['bob', QUOTA],
  ]),
}

function configuration(
  upstream: ScriptedUpstream,
  provider: StormPlan['provider'],
  frontUrl: string | undefined,
): Configuration {
  return {
    ...(provider && { options: { media: { allow_private_networks: true } } }),
    groups: { default: { budget: QUOTA, budget_period: 'day' } },
    models: serveTraffic(upstream),
    channels: [
      ...(provider ? [channelOf(upstream, provider, frontUrl)] : []),
      channel(TRAFFIC_MODEL, upstream.baseUrl(TRAFFIC_MODEL), {
        models: [TRAFFIC_MODEL, ...Object.keys(MEDIA_MODELS)],
      }),
      ...dialectChannels(upstream, TRAFFIC_MODEL),
    ],
    users: [
      ROOT,
      user(
        2,
        'ann',
        [token('calm', { remain_quota: QUOTA }), token('scarce', { remain_quota: SCARCE, ...LESS })],
        {
          quota: QUOTA,
          budget: QUOTA,
          budget_period: 'month',
        },
      ),
      user(3, 'bob', [token('windy', { remain_quota: QUOTA })], { quota: QUOTA }),
    ],
  }
}

/** The channel of a provider, and after it one without a provider. */
function channelOf(
  upstream: ScriptedUpstream,
  provider: 'bedrock' | 'vertex',
  frontUrl: string | undefined,
): Record<string, unknown> {
  const common = { name: provider, provider, models: [TRAFFIC_MODEL], priority: 1 }
  if (provider === 'bedrock') {
    const keys = [`${ACCOUNT.id}:${ACCOUNT.secret}`]
    return { ...common, protocol: 'messages', region: REGION, base_url: frontUrl, keys }
  }
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const account = {
    type: 'service_account',
    project_id: 'my-project',
    private_key_id: 'key-1',
    private_key: privateKey.export({ type: 'pkcs8', format: 'pem' }),
    client_email: 'gateway@my-project.iam.gserviceaccount.com',
    token_uri: upstream.baseUrl('token'),
  }
  const token = { access_token: 'a-token', expires_in: 3599, token_type: 'Bearer' }
  upstream.script('token', { kind: 'whole', body: JSON.stringify(token) })
  const url = upstream.baseUrl(TRAFFIC_MODEL)
  return { ...common, protocol: 'chat', base_url: url, keys: [JSON.stringify(account)] }
}

/** Waits until this number of further responses is complete, however slow the machine is. */
async function untilUnderWay(observations: readonly Observation[], answers: number): Promise<void> {
  const before = observations.length
  const giveUpAt = performance.now() + 120_000
  const isUnderWay = (): boolean =>
    observations.slice(before).filter(({ status, complete }) => status === 200 && complete).length >= answers
  while (!isUnderWay() && performance.now() < giveUpAt) await sleep(5)
}

/** Kills a worker, and lets the other workers and its successor work for a while. */
async function killWorker(owner: number, random: () => number): Promise<void> {
  const pids = workerPids(owner)
  const pid = pids[Math.floor(random() * pids.length)]
  if (pid !== undefined) process.kill(pid, 'SIGKILL')
  await sleep(random() * LONGEST_LOSS_MS)
}

async function untilLeft(dataDir: string): Promise<void> {
  const giveUpAt = performance.now() + 120_000
  const left = () =>
    databaseOf(dataDir)
      .usage()
      .filter(({ reason }) => reason === 'client_gone')
  while (left().length < LEFT && performance.now() < giveUpAt) await sleep(50)
}

/**
 * Waits until something was delivered that is not recorded in the file, or until the upstream has answered
 * all calls and no client receives more.
 */
async function untilDelivered(
  dataDir: string,
  observations: readonly ObservedCall[],
  gateOne: HoldCheck,
  upstream: ScriptedUpstream,
): Promise<void> {
  const stuckMs = performance.now()
  const giveUpAt = stuckMs + 120_000
  let activeMs = stuckMs
  const isDelivered = (): boolean =>
    gateOne.untraced.length > 0 ||
    observations.some(
      ({ id = '', endedMs, status, complete }) =>
        endedMs > stuckMs && status === 200 && complete && !databaseOf(dataDir).usageOf(id),
    )
  while (!isDelivered() && performance.now() < Math.min(giveUpAt, activeMs + QUIET_MS)) {
    const isAnswering = upstream.received(TRAFFIC_MODEL).some(({ endedAt }) => endedAt === undefined)
    if (isAnswering) activeMs = performance.now()
    await sleep(20)
  }
}

/** Checks from outside whether a call's hold or charge is in the file when its first content has arrived. */
class HoldCheck {
  readonly #dataDir: string
  /** Number of checked responses. */
  checked = 0
  /** A sentence for each response that is not recorded in the file. */
  readonly untraced: string[] = []

  constructor(dataDir: string) {
    this.#dataDir = dataDir
  }

  async check(live: LiveResponse): Promise<void> {
    const came = await live.until(CONTENT).then(
      () => true,
      () => false,
    )
    const id = String(live.headers['x-request-id'])
    if (!came) return
    const database = databaseOf(this.#dataDir)
    this.checked += 1
    // The order matters: a hold that is gone must have been replaced by a charge.
    const isHeld = database.openHolds().some((hold) => hold.id === id)
    if (!isHeld && !database.usageOf(id))
      this.untraced.push(`${id} showed content before its hold was durable`)
  }
}

function countsOf(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1
  return counts
}
