import { z } from 'zod'
import type { User } from '../domain/records/user.ts'
import { type UsageFilter, filterValueList } from '../domain/usage-filter.ts'
import { GatewayError } from '../errors.ts'
import { pageOfQuery, pageQuery, pageSchema } from '../management/page.ts'
import type { AdministrationServices, ManagementServices } from '../management/services.ts'
import {
  callOfAnyUser,
  callIdPath,
  callSchema,
  ownCall,
  ownCallSchema,
} from '../management/usage/call-detail.ts'
import {
  callContent,
  callContentSchema,
  contentDeletionQuery,
  deleteContent,
} from '../management/usage/call-content.ts'
import {
  callFilterOf,
  csvFormat,
  exportQuery,
  usageFilterOfQuery,
  listUsage,
  callOrderQuery,
  ownExportQuery,
  ownUsageQuery,
  usageCsv,
  usageQuery,
} from '../management/usage/list-usage.ts'
import { cacheRemovalQuery, cacheRemovalSchema, removeKeptAnswers } from '../management/answer-cache.ts'
import { csvName } from '../management/csv-name.ts'
import {
  ownValuesQuery,
  usageValues,
  usageValueSchema,
  valuesQuery,
} from '../management/usage/usage-values.ts'
import { failedCalls, failuresQuery, ownFailuresQuery } from '../management/usage/failures.ts'
import {
  countedCallsCsv,
  failedCallsSchema,
  refusedCallsSchema,
  ownRefusalsQuery,
  refusalsQuery,
  refusedCalls,
} from '../management/usage/refusals.ts'
import {
  listRefusedCalls,
  ownRefusedQuery,
  refusedCallSchema,
  refusedDetailSchema,
  refusedQuery,
} from '../management/usage/refused-calls.ts'
import {
  ownSeriesQuery,
  seriesPeriodOf,
  periodQuery,
  seriesCsv,
  seriesQuery,
  usageSeries,
  usageSeriesSchema,
} from '../management/usage/usage-series.ts'
import {
  daysQuery,
  ownDaysQuery,
  usageByDay,
  usageDaySchema,
  usageStat,
} from '../management/usage/sum-usage.ts'
import {
  ownUsageObject,
  ownUsageSchema,
  usageObject,
  usageSchema,
  usageStatSchema,
} from '../management/usage/usage-object.ts'
import {
  ownRunningCalls,
  ownRunningSchema,
  runningCalls,
  runningPath,
  runningQuery,
  runningSchema,
  stopCall,
} from '../management/usage/running-calls.ts'
import {
  contentSearchQuery,
  contentSearchSchema,
  firstWordsOfCalls,
  firstWordsQuery,
  firstWordsSchema,
  searchContent,
} from '../management/usage/search-content.ts'
import { usageSessions, usageSessionSchema, usageSessionsQuery } from '../management/usage/usage-sessions.ts'
import { whatIf, whatIfBody, whatIfSchema } from '../management/usage/what-if.ts'
import {
  type ClientExchange,
  defineAccountEndpoint,
  defineAdminEndpoint,
  type JsonEndpoint,
} from './endpoint.ts'
import { wholeText } from './send-response.ts'

const CSV_TYPE = 'text/csv; charset=utf-8'
type Export = z.output<typeof exportQuery> | z.output<typeof ownExportQuery>
const CALLS_CSV = {
  type: CSV_TYPE,
  filename: ({ start_timestamp: start, end_timestamp: end, tz }: Export, nowMs: number) =>
    csvName('calls', { start, end, tz }, nowMs),
}
/** The format of a CSV file with the totals of a period; `what` begins its file name. */
const sumsCsv = (what: string) => ({
  type: CSV_TYPE,
  filename: (query: z.output<typeof periodQuery>, nowMs: number) => {
    const { fromS, toS } = seriesPeriodOf(query, nowMs)
    return csvName(what, { start: fromS, end: toS - 1, tz: query.tz }, nowMs)
  },
})
const USAGE_CSV = sumsCsv('usage')
const REFUSALS_CSV = sumsCsv('refusals')
const FAILURES_CSV = sumsCsv('failures')
const EVENTS = { type: 'text/event-stream', isEndless: true } as const
/**
 * Milliseconds between two checks of the client's authorization during a stream, and the number of checks
 * after which a comment keeps the connection alive.
 */
const CHECK_MS = 5_000
const CHECKS_PER_COMMENT = 3

/**
 * Endpoints that show calls and their sums: `docs/api.md: Usage log`, `docs/api.md: Usage series`,
 * `docs/api.md: Refused calls`, `docs/api.md: Live calls`.
 */
export const USAGE_ENDPOINTS: readonly JsonEndpoint[] = [
  defineAdminEndpoint('GET', '/api/log/', {
    summary: "All users' settled calls, the newest first",
    errorStatuses: [400],
    query: z.object({ ...usageQuery.shape, ...callOrderQuery.shape, ...pageQuery.shape }),
    responseBody: pageSchema(usageSchema),
    handle: ({ query, services }) =>
      listUsage(services, usageFilterOfQuery(query), pageOfQuery(query), usageObject, query),
  }),
  defineAccountEndpoint('GET', '/api/log/self', {
    summary: "The account's own settled calls, the newest first",
    errorStatuses: [400],
    query: z.object({ ...ownUsageQuery.shape, ...callOrderQuery.shape, ...pageQuery.shape }),
    responseBody: pageSchema(ownUsageSchema),
    handle: ({ user, query, services }) =>
      listUsage(services, usageFilterOfQuery(query, user.id), pageOfQuery(query), ownUsageObject, query),
  }),
  defineAdminEndpoint('GET', '/api/log/stat', {
    summary: 'Sums of usage, in total and in the last minute',
    errorStatuses: [400],
    query: usageQuery,
    responseBody: usageStatSchema,
    handle: ({ query, services }) => usageStat(services, usageFilterOfQuery(query)),
  }),
  defineAccountEndpoint('GET', '/api/log/self/stat', {
    summary: "Sums of the account's usage, in total and in the last minute",
    errorStatuses: [400],
    query: ownUsageQuery,
    responseBody: usageStatSchema,
    handle: ({ user, query, services }) => usageStat(services, usageFilterOfQuery(query, user.id)),
  }),
  defineAdminEndpoint('GET', '/api/log/export', {
    summary: "All users' settled calls as CSV",
    errorStatuses: [400],
    query: exportQuery,
    text: CALLS_CSV,
    handle: ({ query, services }) =>
      Promise.resolve(
        usageCsv(
          services,
          usageFilterOfQuery(query),
          usageSchema.keyof().options,
          usageObject,
          csvFormat(services, query),
        ),
      ),
  }),
  defineAccountEndpoint('GET', '/api/log/self/export', {
    summary: "The account's own settled calls as CSV",
    errorStatuses: [400],
    query: ownExportQuery,
    text: CALLS_CSV,
    handle: ({ user, query, services }) => {
      const columns = ownUsageSchema.keyof().options
      const filter = usageFilterOfQuery(query, user.id)
      return Promise.resolve(usageCsv(services, filter, columns, ownUsageObject, csvFormat(services, query)))
    },
  }),
  defineAdminEndpoint('GET', '/api/data/', {
    summary: 'Usage of each model on each day',
    errorStatuses: [400],
    query: daysQuery,
    responseBody: z.array(usageDaySchema),
    handle: ({ query, services }) =>
      usageByDay(services, query, { username: query.username }, query.username),
  }),
  defineAccountEndpoint('GET', '/api/data/self', {
    summary: "Usage of each model on each day, of the account's own calls",
    errorStatuses: [400],
    query: ownDaysQuery,
    responseBody: z.array(usageDaySchema),
    handle: ({ user, query, services }) => usageByDay(services, query, { user_id: user.id }, user.username),
  }),
  defineAccountEndpoint('GET', '/api/sessions', {
    summary: "Sums of calls by session: the account's own, or those of all users for administrators",
    errorStatuses: [400],
    query: usageSessionsQuery,
    responseBody: pageSchema(usageSessionSchema),
    handle: ({ user, query, services }) => usageSessions(services, query, user),
  }),
  defineAdminEndpoint('GET', '/api/usage', {
    summary: 'Usage by hour, day or month in any time zone',
    errorStatuses: [400],
    query: seriesQuery,
    responseBody: usageSeriesSchema,
    text: USAGE_CSV,
    handle: ({ query, services }) => seriesAs(services, query),
  }),
  defineAccountEndpoint('GET', '/api/usage/self', {
    summary: "The account's own usage by hour, day or month in any time zone",
    errorStatuses: [400],
    query: ownSeriesQuery,
    responseBody: usageSeriesSchema,
    text: USAGE_CSV,
    handle: ({ user, query, services }) => seriesAs(services, query, user),
  }),
  defineAdminEndpoint('GET', '/api/usage/refusals', {
    summary: 'Refused calls by hour, day or month, and by code, API key or user',
    errorStatuses: [400],
    query: refusalsQuery,
    responseBody: refusedCallsSchema,
    text: REFUSALS_CSV,
    handle: ({ query, services }) => refusalsAs(services, query),
  }),
  defineAccountEndpoint('GET', '/api/usage/self/refusals', {
    summary: "Refused calls with the account's own keys by hour, day or month",
    errorStatuses: [400],
    query: ownRefusalsQuery,
    responseBody: refusedCallsSchema,
    text: REFUSALS_CSV,
    handle: ({ user, query, services }) => refusalsAs(services, query, user),
  }),
  defineAdminEndpoint('GET', '/api/usage/failures', {
    summary: 'Failed calls by hour, day or month, and by cause, model, API key, user or channel',
    errorStatuses: [400],
    query: failuresQuery,
    responseBody: failedCallsSchema,
    text: FAILURES_CSV,
    handle: ({ query, services }) => failuresAs(services, query),
  }),
  defineAccountEndpoint('GET', '/api/usage/self/failures', {
    summary: "The account's own failed calls by hour, day or month",
    errorStatuses: [400],
    query: ownFailuresQuery,
    responseBody: failedCallsSchema,
    text: FAILURES_CSV,
    handle: ({ user, query, services }) => failuresAs(services, query, user),
  }),
  defineAdminEndpoint('GET', '/api/log/refused', {
    summary: 'Refused calls of the last 72 hours, the newest first',
    errorStatuses: [400],
    query: z.object({ ...refusedQuery.shape, ...pageQuery.shape }),
    responseBody: pageSchema(refusedCallSchema),
    handle: ({ query, services }) => listRefusedCalls(services, query, pageOfQuery(query)),
  }),
  defineAccountEndpoint('GET', '/api/log/self/refused', {
    summary: "Refused calls with the account's own keys, the newest first",
    errorStatuses: [400],
    query: z.object({ ...ownRefusedQuery.shape, ...pageQuery.shape }),
    responseBody: pageSchema(refusedCallSchema),
    handle: ({ user, query, services }) => listRefusedCalls(services, query, pageOfQuery(query), user.id),
  }),
  defineAdminEndpoint('GET', '/api/log/values', {
    summary: 'Values that a field of calls has in a period, for filters',
    errorStatuses: [400],
    query: valuesQuery,
    responseBody: z.array(usageValueSchema),
    handle: ({ query, services }) => usageValues(services, query),
  }),
  defineAccountEndpoint('GET', '/api/log/self/values', {
    summary: "Values that a field of the account's own calls has in a period, for filters",
    errorStatuses: [400],
    query: ownValuesQuery,
    responseBody: z.array(usageValueSchema),
    handle: ({ user, query, services }) => usageValues(services, query, user.id),
  }),
  defineAdminEndpoint('POST', '/api/usage/what-if', {
    summary: 'What the calls of a period would have cost at other prices, ratios or models',
    body: whatIfBody,
    responseBody: whatIfSchema,
    handle: ({ body, services }) => whatIf(services, body),
  }),
  defineAdminEndpoint('GET', '/api/running', {
    summary: "All users' calls under way, on this node or on all nodes",
    errorStatuses: [400],
    query: runningQuery,
    responseBody: runningSchema,
    handle: ({ query, services }) => runningCalls(services, query),
  }),
  defineAccountEndpoint('GET', '/api/running/self', {
    summary: "The account's own calls under way, on this node or on all nodes",
    errorStatuses: [400],
    query: runningQuery,
    responseBody: ownRunningSchema,
    handle: ({ user, query, services }) => ownRunningCalls(services, query, user.id),
  }),
  defineAccountEndpoint('POST', '/api/running/:id/stop', {
    summary: "Ends one of the account's own calls under way, or any for administrators",
    errorStatuses: [404],
    params: runningPath,
    handle: ({ user, params, services }) => stopCall(services, params.id, user),
  }),
  defineAccountEndpoint('DELETE', '/api/cache', {
    isLimitedDaily: () => true,
    summary: "Removes kept answers: an account's own, or those of all users for administrators",
    errorStatuses: [400],
    query: cacheRemovalQuery,
    responseBody: cacheRemovalSchema,
    handle: ({ user, query, services }) => removeKeptAnswers(services, query, user),
  }),
  defineAdminEndpoint('GET', '/api/log/:id', {
    summary: 'A settled call with the lines of its cost and its attempts, or a refused call',
    errorStatuses: [404],
    params: callIdPath,
    responseBody: z.union([callSchema, refusedDetailSchema]),
    handle: ({ params, services }) => callOfAnyUser(services, params.id),
  }),
  defineAccountEndpoint('GET', '/api/log/self/:id', {
    summary: "One of the account's own settled calls with the lines of its cost, or a refused call",
    errorStatuses: [404],
    params: callIdPath,
    responseBody: z.union([ownCallSchema, refusedDetailSchema]),
    handle: ({ user, params, services }) => ownCall(services, params.id, user.id),
  }),
  defineAccountEndpoint('GET', '/api/content/search', {
    summary: 'Calls in which words were said: the own ones, and those of others for those who may read them',
    errorStatuses: [400],
    query: contentSearchQuery,
    responseBody: contentSearchSchema,
    handle: ({ user, query, services }) => searchContent(services, query, user),
  }),
  defineAccountEndpoint('GET', '/api/content/words', {
    summary: 'What users said first in calls',
    errorStatuses: [400],
    query: firstWordsQuery,
    responseBody: firstWordsSchema,
    handle: ({ user, query, services }) => firstWordsOfCalls(services, query, user),
  }),
  defineAccountEndpoint('GET', '/api/content/:id', {
    summary: 'What was said in a call: its own, or that of others for those who may read it',
    errorStatuses: [404],
    params: callIdPath,
    responseBody: callContentSchema,
    handle: ({ user, params, services }) => callContent(services, params.id, user),
  }),
  defineAccountEndpoint('DELETE', '/api/content', {
    isLimitedDaily: () => true,
    summary: "Deletes what was said in the account's own calls, or in those of others for administrators",
    errorStatuses: [400, 403, 404],
    query: contentDeletionQuery,
    handle: ({ user, query, services }) => deleteContent(services, query, user),
  }),
  defineAdminEndpoint('GET', '/api/log/stream', {
    summary: "All users' calls as this node settles them, as server-sent events",
    errorStatuses: [400],
    query: usageQuery,
    text: EVENTS,
    handle: async ({ query, ...input }) =>
      live(input, await namedChannels(input.services, usageFilterOfQuery(query)), 'all'),
  }),
  defineAccountEndpoint('GET', '/api/log/self/stream', {
    summary: "The account's own calls as this node settles them, as server-sent events",
    errorStatuses: [400],
    query: ownUsageQuery,
    text: EVENTS,
    handle: ({ query, ...input }) =>
      Promise.resolve(live(input, usageFilterOfQuery(query, input.user.id), 'own')),
  }),
]

async function seriesAs(
  services: ManagementServices,
  query: z.output<typeof seriesQuery> | z.output<typeof ownSeriesQuery>,
  user?: User,
) {
  const period = seriesPeriodOf(query, services.nowMs())
  const { by = 'model' } = query
  const filter = callFilterOf(query, user?.id)
  const made = await usageSeries(services, {
    period,
    filter,
    by,
    ranks: query.rank,
    withOwners: user === undefined,
  })
  return query.format === 'csv' ? wholeText(seriesCsv(made, csvFormat(services, query))) : made
}

async function refusalsAs(
  services: ManagementServices,
  query: z.output<typeof refusalsQuery> | z.output<typeof ownRefusalsQuery>,
  user?: User,
) {
  const period = seriesPeriodOf(query, services.nowMs())
  const { user_id, username } = query as z.output<typeof refusalsQuery>
  const { token_id, token_name, code } = query
  const filter = { user_id: user?.id ?? user_id, username, token_id, token_name, code }
  const made = await refusedCalls(services, { period, filter, by: query.by ?? 'code' })
  return query.format === 'csv' ? wholeText(countedCallsCsv(made, period)) : made
}

async function failuresAs(
  services: ManagementServices,
  query: z.output<typeof failuresQuery> | z.output<typeof ownFailuresQuery>,
  user?: User,
) {
  const period = seriesPeriodOf(query, services.nowMs())
  const filter = callFilterOf(query, user?.id)
  const { by = 'cause' } = query
  const made = await failedCalls(services, { period, filter, by, withOwners: user === undefined })
  return query.format === 'csv' ? wholeText(countedCallsCsv(made, period)) : made
}

/**
 * Replaces channel ids in a filter by channel names, because calls that were just settled have no channel id
 * yet.
 */
async function namedChannels(
  { store }: Pick<AdministrationServices, 'store'>,
  given: UsageFilter | null,
): Promise<UsageFilter | null> {
  if (!given || given.channel_id === undefined) return given
  const { channel_id: ids, ...filter } = given
  const ofIds = await store.read('namesOfChannels', { ids: filterValueList(ids) })
  const names = filter.channel === undefined ? ofIds : filterValueList(filter.channel)
  return { ...filter, channel: names.filter((name) => ofIds.includes(name)) }
}

interface LiveInput {
  readonly user: { readonly id: number }
  readonly exchange: ClientExchange
  readonly services: AdministrationServices
  readonly reauthenticate: () => Promise<void>
}

function live(
  { user, exchange: { request, response }, services, reauthenticate }: LiveInput,
  filter: UsageFilter | null,
  scope: 'all' | 'own',
): AsyncIterable<string> {
  const lastId = request.headers['last-event-id']
  const reader = services.liveCalls.open({
    userId: user.id,
    scope,
    filter,
    lastId: typeof lastId === 'string' && lastId !== '' ? lastId : undefined,
  })
  let checks = 0
  const checking = setInterval(() => {
    if (!reader.isOpen) return clearInterval(checking)
    checks += 1
    if (checks % CHECKS_PER_COMMENT === 0) reader.comment()
    reauthenticate().catch((error: unknown) => {
      // Errors of the server, such as an unavailable database, do not end the stream.
      if (error instanceof GatewayError && error.kind.status < 500) reader.end(error.code)
    })
  }, CHECK_MS).unref()
  response.onClosed(() => {
    clearInterval(checking)
    reader.leave()
  })
  // An idle stream would not notice that its client has closed its side, and would keep its place.
  response.lastsUntilClientLeaves()
  // If the response was aborted before the listener was added, the listener is never called.
  if (response.isAborted) reader.leave()
  return reader.text()
}
