import { queryOptions } from '@tanstack/react-query'
import type { z } from 'zod'
import type { channelFields } from '../../src/management/channels/channel-fields.ts'
import type { upstreamModels } from '../../src/management/channels/upstream-requests.ts'
import type { ShownChannel } from '../../src/management/channels/list-channels.ts'
import type { testAllResult, testResult } from '../../src/management/channels/test-channel.ts'
import type { ListOrder } from '../components/sorting.ts'
import { ApiError } from './api-error.ts'
import { queryString, request, requestWholeBody } from './client.ts'
import type { PageOfItems } from './page-of-items.ts'

/** The named fields of an object type, without its index signature. */
type NamedFields<T> = { readonly [Name in keyof T as string extends Name ? never : Name]: T[Name] }

/** A channel, without its keys. */
export type Channel = NamedFields<ShownChannel>

/** The fields of a channel that a person sets. In a change, an empty `key` keeps the present keys. */
export type ChannelFields = NamedFields<z.input<typeof channelFields>>

/** The result of a test; `time` is in seconds. `success` is null if there was no time left for the test. */
export type ChannelTest = Pick<z.output<typeof testResult>, 'message' | 'time' | 'costs' | 'needs_repair'> & {
  readonly success: boolean | null
}

/** The maximum number of channels on a page. */
const PAGE_SIZE = 100

/** The filters and the order of a list of channels. */
export interface ChannelFilter extends ListOrder {
  /** A text that a channel's name or base URL contains, or a channel's id. */
  readonly keyword?: string | undefined
  readonly condition?: string | undefined
}

export function channelsQuery(userId: number, page: number, filter: ChannelFilter = {}) {
  return queryOptions({
    queryKey: [userId, 'channels', page, filter],
    queryFn: () => readPage(page, filter),
  })
}

function readPage(page: number, filter: ChannelFilter): Promise<PageOfItems<Channel>> {
  const query = queryString({ p: page, page_size: PAGE_SIZE, ...filter })
  return request<PageOfItems<Channel>>('GET', `/api/channel/search${query}`)
}

/** The ids of all channels that a filter selects; undefined if there is no filter. */
export async function idsOfFilteredChannels(filter: ChannelFilter): Promise<readonly number[] | undefined> {
  if (!filter.keyword && !filter.condition) return undefined
  const ids: number[] = []
  for (let page = 1; ; page++) {
    const { items, total } = await readPage(page, filter)
    ids.push(...items.map(({ id }) => id))
    if (items.length === 0 || ids.length >= total) return ids
  }
}

/** The names of the channels whose names contain a text: at most one page of them. */
export function channelNamesQuery(userId: number, text: string) {
  return queryOptions({
    queryKey: [userId, 'channels', 'names', text],
    queryFn: async () => {
      const query = queryString({ keyword: text, page_size: PAGE_SIZE })
      const { items } = await request<PageOfItems<Channel>>('GET', `/api/channel/search${query}`)
      return new Set(items.map(({ name }) => name))
    },
    staleTime: 0,
  })
}

export function channelQuery(userId: number, id: number) {
  return queryOptions({
    queryKey: [userId, 'channel', id],
    queryFn: () => request<Channel>('GET', `/api/channel/${id}`),
  })
}

/** Creates a channel and returns its id. */
export async function createChannel(fields: ChannelFields): Promise<number> {
  const { ids } = await request<{ readonly ids: readonly number[] }>('POST', '/api/channel/', {
    mode: 'multi_to_single',
    channel: fields,
  })
  return ids[0] ?? 0
}

export function changeChannel(
  id: number,
  fields: Partial<ChannelFields> & { readonly version?: string | undefined },
): Promise<Channel> {
  return request<Channel>('PUT', '/api/channel/', { id, ...fields })
}

/** Stops or resumes sending new calls to a channel. */
export function drainChannel(id: number, on: boolean): Promise<Channel> {
  return request<Channel>('PUT', `/api/channel/${id}/drain`, { on })
}

export async function deleteChannel(id: number): Promise<void> {
  await request('DELETE', `/api/channel/${id}`)
}

/** Tests the upstream of a saved channel; a failure of the upstream is a result, not an error. */
export function testChannel(id: number): Promise<ChannelTest> {
  return outcome(requestWholeBody<ChannelTest>('GET', `/api/channel/test/${id}`))
}

/**
 * Tests the upstream with the unsaved fields of a form; `id` is the channel that the form changes, undefined
 * for a new one.
 */
export function testUnsavedChannel(fields: ChannelFields, id: number | undefined): Promise<ChannelTest> {
  return outcome(requestWholeBody<ChannelTest>('POST', '/api/channel/test', { channel: { ...fields, id } }))
}

/** Tests the channels with these ids, or all of them. Models for images or speech are not tested. */
export async function testAllChannels(
  ids: readonly number[] | undefined,
): Promise<ReadonlyMap<number, ChannelTest>> {
  const results = await request<z.output<typeof testAllResult>>('POST', '/api/channel/test/all', { ids })
  return new Map(results.map((result) => [result.id, { ...result, costs: false }]))
}

export async function fetchUpstreamModelNames(
  fields: ChannelFields,
  id: number | undefined,
): Promise<readonly string[]> {
  const { data } = await requestWholeBody<z.output<typeof upstreamModels>>('POST', '/api/channel/models', {
    channel: { ...fields, id },
  })
  return data
}

async function outcome(test: Promise<ChannelTest>): Promise<ChannelTest> {
  try {
    return await test
  } catch (error) {
    // The gateway reports a failed test with the status 200 and `success: false`.
    if (!(error instanceof ApiError) || error.status !== 200) throw error
    return { success: false, message: error.message, time: 0, costs: false, needs_repair: false }
  }
}
