import { z } from 'zod'
import type { User } from '../domain/records/user.ts'
import { Role } from '../domain/role.ts'
import { KEY_END_LENGTH } from '../store/secrets.ts'
import { allChannels } from './channels/channel-object.ts'
import { textField } from './input-fields.ts'
import { findableByEnd } from './tokens/tokens-of-all.ts'
import { pricing } from './models/pricing.ts'
import type { AdministrationServices } from './services.ts'

const MAX_FOUND = 20
const CALL_ID = /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/

/** Query parameters of a search. */
export const findQuery = z.object({
  q: textField('expected what to find').max(200, { error: 'expected at most 200 characters' }),
})

const KINDS = ['key', 'model', 'channel', 'user', 'group', 'call'] as const

const found = z.object({
  kind: z.enum(KINDS),
  id: z.string(),
  label: z.string(),
  detail: z.string(),
  path: z.string().meta({ description: 'A page of the console' }),
})

/** Search results, the best first. */
export const findSchema = z.object({ items: z.array(found) })

type Found = z.output<typeof found>

type Services = Pick<AdministrationServices, 'store' | 'settings' | 'liveConfig' | 'modelEnds'>

/**
 * Finds objects by name, API keys also by their last four characters, and calls by id. `docs/api.md: Find`.
 */
export async function findObjects(
  services: Services,
  q: string,
  user: User,
): Promise<z.output<typeof findSchema>> {
  const query = q.trim().toLowerCase()
  if (query === '') return { items: [] }
  const isAdmin = user.role >= Role.admin
  const read = [keysFound(services, q.trim(), user)]
  if (isAdmin) read.push(channelsFound(services, query), usersFound(services, query))
  if (CALL_ID.test(query)) read.push(callFound(services, query, user))
  const named = [...modelsFound(services, query, user), ...(isAdmin ? groupsFound(services, query) : [])]
  const items = [...(await Promise.all(read)).flat(), ...named].toSorted(
    (a, b) => rank(a, query) - rank(b, query),
  )
  return { items: items.slice(0, MAX_FOUND) }
}

/**
 * The rank of a result, lower is better: calls and exact matches come first, then names that begin with the
 * query.
 */
function rank({ kind, label, detail }: Found, query: string): number {
  if (kind === 'call') return 0
  const name = label.toLowerCase()
  if (name === query || (kind === 'key' && detail.toLowerCase().endsWith(query))) return 1
  return name.startsWith(query) ? 2 : 3
}

async function keysFound({ store }: Services, part: string, user: User): Promise<Found[]> {
  if (part.length === KEY_END_LENGTH) await findableByEnd(store)
  const userId = user.role >= Role.admin ? undefined : user.id
  const keys = await store.read('findKeys', { userId, part, limit: MAX_FOUND })
  return keys.map(({ id, name, username, owner, end }) => ({
    kind: 'key',
    id: String(id),
    label: name,
    detail: [...(owner === user.id ? [] : [username]), ...(end === '' ? [] : [`…${end}`])].join(' '),
    path: owner === user.id ? `/keys/${id}` : `/users/${owner}/keys/${id}`,
  }))
}

function modelsFound({ settings, modelEnds }: Services, query: string, user: User): Found[] {
  const live = settings()
  const names =
    user.role >= Role.admin
      ? [...live.models.declared, ...live.channels.flatMap(({ models }) => models)]
      : pricing(live, user, modelEnds).data.map((model) => model.model_name)
  return [...new Set(names)].filter(contains(query)).map((name) => ({
    kind: 'model',
    id: name,
    label: name,
    detail: live.models.get(name).vendor ?? '',
    path: `/models?q=${encodeURIComponent(name)}`,
  }))
}

async function channelsFound(services: Services, query: string): Promise<Found[]> {
  const channels = await allChannels(services)
  return channels
    .filter(({ name }) => contains(query)(name))
    .map(({ id, name }) => ({
      kind: 'channel',
      id: String(id),
      label: name,
      detail: '',
      path: `/channels/${id}`,
    }))
}

async function usersFound({ store }: Services, query: string): Promise<Found[]> {
  const { users } = await store.read('pageOfUsers', {
    keyword: query,
    group: undefined,
    offset: 0,
    limit: MAX_FOUND,
  })
  return users.map(({ id, username, display_name: name }) => ({
    kind: 'user',
    id: String(id),
    label: username,
    detail: name,
    path: `/users/${id}`,
  }))
}

function groupsFound({ settings }: Services, query: string): Found[] {
  return [...settings().groups.keys()].filter(contains(query)).map((name) => ({
    kind: 'group',
    id: name,
    label: name,
    detail: '',
    path: `/groups?group=${encodeURIComponent(name)}`,
  }))
}

async function callFound({ store }: Services, id: string, user: User): Promise<Found[]> {
  const userId = user.role >= Role.admin ? undefined : user.id
  const call = await store.read('callDetail', { id, userId })
  if (!call) return []
  const { model, username } = call.entry
  return [{ kind: 'call', id, label: model, detail: username, path: `/logs/${id}` }]
}

function contains(query: string): (name: string) => boolean {
  return (name) => name.toLowerCase().includes(query)
}
