import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import { type RunningCall, RUNNING_STATES } from '../../domain/running-call.ts'
import type { User } from '../../domain/records/user.ts'
import { Role } from '../../domain/role.ts'
import { GatewayError } from '../../errors.ts'
import type { AdministrationServices } from '../services.ts'

/** Maximum number of calls that are listed per node. */
const MAX_LISTED = 500

/** Name of the question with which nodes ask each other for their running calls. */
const LIST = 'running'
/** Name of the question that asks other nodes to stop a call. */
const STOP = 'stop'

/** Query parameter that states whose calls to list: those of this node or of all nodes. */
export const runningQuery = z.object({
  nodes: z.enum(['this', 'all'], { error: 'expected this or all' }).optional(),
})

/** Path parameter that identifies a running call: the `x-request-id` of its response. */
export const runningPath = z.object({
  id: z.string().regex(/^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}(?:\.\d{1,9}){0,3}$/i, {
    error: 'expected the id of a call',
  }),
})

const ownItem = z.object({
  id: z.string(),
  started_at: z.int(),
  user_id: z.int(),
  username: z.string(),
  token_id: z.int(),
  token_name: z.string(),
  model_name: z.string(),
  kind: z.string(),
  is_stream: z.boolean(),
  attempt: z.int(),
  state: z.enum(RUNNING_STATES),
  output_tokens: z.int(),
  cost: z.int(),
  held: z.int(),
})
const item = ownItem.extend({ channel: z.string() })

type Item = z.output<typeof item>

const listOf = <Shown extends z.ZodType>(shown: Shown) =>
  z.object({ node: z.string(), at: z.int(), total: z.int(), items: z.array(shown) })
const withOthers = <Shown extends z.ZodType>(shown: Shown) =>
  listOf(shown).extend({ others: z.array(listOf(shown)) })

/** The running calls of this node, and of the other nodes if they were requested. */
export const runningSchema = withOthers(item)

/** The running calls as their user sees them, without channels. */
export const ownRunningSchema = withOthers(ownItem)

/** The running calls that one node reports to another. */
const report = listOf(item)

type Running = z.output<typeof report>

type RunningCallServices = Pick<AdministrationServices, 'running' | 'otherNodes' | 'node' | 'nowMs'>

/**
 * The running calls, the oldest first: those of one user, or of all users if `userId` is undefined.
 * `docs/api.md: Calls under way`.
 */
export async function runningCalls(
  services: RunningCallServices,
  { nodes }: z.output<typeof runningQuery>,
  userId?: number,
): Promise<z.output<typeof runningSchema>> {
  // The question to the other nodes does not name a user, so that one answer serves all readers. The answers
  // are filtered by user afterwards.
  const reports = nodes === 'all' ? ((await services.otherNodes?.others(LIST)) ?? []) : []
  const others = reports.flatMap((text) => readReport(text) ?? []).map((one) => ofUser(one, userId))
  return {
    ...ofUser(ownRunning(services), userId),
    others: others.toSorted((a, b) => (a.node < b.node ? -1 : 1)),
  }
}

/** The running calls of a user, without channels. */
export async function ownRunningCalls(
  services: RunningCallServices,
  query: z.output<typeof runningQuery>,
  userId: number,
): Promise<z.output<typeof ownRunningSchema>> {
  const { others, ...own } = await runningCalls(services, query, userId)
  const withoutChannels = (running: Running) => ({
    ...running,
    items: running.items.map((one) => ownItem.parse(one)),
  })
  return { ...withoutChannels(own), others: others.map(withoutChannels) }
}

/**
 * Stops a running call, on whichever node it runs. Users may stop their own calls, administrators all calls.
 */
export async function stopCall(
  services: RunningCallServices & Pick<AdministrationServices, 'store'>,
  id: string,
  user: User,
): Promise<void> {
  const ownerId = user.role >= Role.admin ? undefined : user.id
  // The question is made unique, because nodes reuse the answer to an equal question for a moment, and a
  // second request would wrongly be answered `stopped`.
  const question = `${STOP}:${id}:${ownerId ?? ''}:${randomBytes(6).toString('hex')}`
  const isStopped =
    services.running.stop(id, ownerId) ||
    ((await services.otherNodes?.others(question)) ?? []).includes('stopped')
  if (!isStopped) throw new GatewayError('not_found', `no call with the id ${id} is under way`)
  await services.store.write('recordCallStop', { callId: id })
}

/** Answers other nodes that ask for this node's running calls, or ask it to stop one. */
export function answerRunningCallRequests(
  reports: NonNullable<AdministrationServices['otherNodes']>,
  services: RunningCallServices,
): void {
  reports.answerWith(async () => JSON.stringify(ownRunning(services)), LIST)
  reports.answerWith(async (argument) => {
    const [id = '', owner = ''] = argument.split(':')
    return services.running.stop(id, owner === '' ? undefined : Number(owner)) ? 'stopped' : ''
  }, STOP)
}

function ownRunning({ running, node, nowMs }: RunningCallServices): Running {
  return { node, at: Math.floor(nowMs() / 1000), total: 0, items: running.list().map(itemOf) }
}

function ofUser(running: Running, userId: number | undefined): Running {
  const items =
    userId === undefined ? running.items : running.items.filter(({ user_id }) => user_id === userId)
  return { ...running, total: items.length, items: items.slice(0, MAX_LISTED) }
}

function itemOf(call: RunningCall): Item {
  return {
    id: call.id,
    started_at: Math.floor(call.startedMs / 1000),
    user_id: call.user.id,
    username: call.user.username,
    token_id: call.token.id,
    token_name: call.token.name,
    model_name: call.model,
    kind: call.kind,
    is_stream: call.stream,
    channel: call.channel,
    attempt: call.attempt,
    state: call.state,
    output_tokens: call.tokens,
    cost: call.cost,
    held: call.held,
  }
}

// Other nodes may run another version, whose reports this one cannot read.
function readReport(text: string): Running | undefined {
  try {
    return report.safeParse(JSON.parse(text)).data
  } catch {
    return undefined
  }
}
