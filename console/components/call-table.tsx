import { Link } from '@tanstack/react-router'
import type { Call, ListedRefusedCall } from '../api/calls.ts'
import { useTexts } from '../locales/use-texts.tsx'
import { CallState, REFUSED } from './call-state.tsx'
import classes from './call-table.module.css'
import { TruncatedText } from './truncated-text.tsx'
import { type Column, DataTable, type Sorting } from './data-table.tsx'
import { MoneyText } from './money-text.tsx'
import { useFormatters } from './session.tsx'
import { TimeText } from './time-text.tsx'
import { isServedInAnotherTier, useTierNames } from './use-tier-names.ts'

/** What the table shows of a call; one that was refused before it began has the code of its error as `cause`. */
export type ListedCall = Pick<
  Call,
  | 'id'
  | 'created_at'
  | 'model_name'
  | 'token_name'
  | 'username'
  | 'channel'
  | 'note'
  | 'service_tier'
  | 'requested_service_tier'
  | 'region'
  | 'prompt_tokens'
  | 'cached_tokens'
  | 'completion_tokens'
  | 'quota'
  | 'first_byte_ms'
  | 'duration_ms'
> & { readonly reason: Call['reason'] | typeof REFUSED; readonly cause: string }

/** The service tier in which the listed prices apply unchanged. */
const STANDARD = 'standard'

/** A refused call as a row of the table: nothing was used, and nothing charged. */
export function listedRefusal(call: ListedRefusedCall): ListedCall {
  const { id, created_at, model_name, token_name, username, code } = call
  return {
    id,
    created_at,
    model_name,
    token_name,
    username,
    channel: '',
    reason: REFUSED,
    note: '',
    cause: code,
    service_tier: '',
    requested_service_tier: '',
    region: '',
    prompt_tokens: 0,
    cached_tokens: 0,
    completion_tokens: 0,
    quota: 0,
    first_byte_ms: null,
    duration_ms: 0,
  }
}

/** A table of calls, settled and refused; each row opens its details. */
export function CallTable({
  calls,
  hidden,
  isStale = false,
  sorting,
}: {
  readonly calls: readonly ListedCall[]
  readonly hidden: readonly string[]
  readonly isStale?: boolean
  readonly sorting?: Sorting
}) {
  const { logs } = useTexts()
  const unused = unusedColumns(calls)
  const columns = useCallColumns().filter(({ key }) => !hidden.includes(key) && !unused.has(key))
  return (
    <DataTable
      label={logs.table}
      columns={columns}
      rows={calls}
      keyOf={({ id }) => id}
      isStale={isStale}
      areOpened
      {...(sorting && { sorting })}
    />
  )
}

/**
 * The names of the columns for tier and region that are hidden because no call has anything to show in them.
 */
function unusedColumns(calls: readonly ListedCall[]): ReadonlySet<string> {
  const hasTier = calls.some(hasOtherTier)
  const hasRegion = calls.some(({ region }) => region !== '')
  return new Set([...(hasTier ? [] : ['tier']), ...(hasRegion ? [] : ['region'])])
}

/** Whether a call was served in another tier than the standard one, or than the one that it asked for. */
function hasOtherTier(call: ListedCall): boolean {
  return isServedInAnotherTier(call) || (call.service_tier !== '' && call.service_tier !== STANDARD)
}

export function useCallColumns(): readonly Column<ListedCall>[] {
  const { logs } = useTexts()
  const { count, duration } = useFormatters()
  const causes: Readonly<Record<string, string>> = { ...logs.refusals, ...logs.causes }
  const tiers = useTierNames()
  return [
    {
      key: 'time',
      sortField: 'created_at',
      label: logs.time,
      phone: 'title',
      cell: ({ id, created_at }) => (
        <Link to="/logs/$id" params={{ id }} search={(before: object) => before} data-row-link={id}>
          <TimeText at={created_at} />
        </Link>
      ),
    },
    { key: 'model', label: logs.model, cell: ({ model_name }) => <TruncatedText text={model_name} isName /> },
    {
      key: 'key',
      label: logs.key,
      phone: 'hidden',
      isOptional: true,
      cell: ({ token_name }) => <TruncatedText text={token_name} />,
    },
    {
      key: 'user',
      label: logs.user,
      phone: 'hidden',
      cell: ({ username }) => <TruncatedText text={username} />,
    },
    {
      key: 'channel',
      label: logs.channel,
      phone: 'hidden',
      isOptional: true,
      cell: ({ channel }) => <TruncatedText text={channel ?? ''} />,
    },
    {
      key: 'status',
      label: logs.status,
      cell: ({ reason, note, cause }) => (
        <span className={classes['status']}>
          <CallState reason={reason} note={note} />
          {cause !== '' && <small title={causes[cause] ?? cause}>{causes[cause] ?? cause}</small>}
        </span>
      ),
    },
    {
      key: 'tier',
      label: logs.tier,
      phone: 'hidden',
      isOptional: true,
      cell: (one) => <TruncatedText text={hasOtherTier(one) ? tiers.textOf(one) : ''} isList />,
    },
    {
      key: 'region',
      label: logs.region,
      phone: 'hidden',
      isOptional: true,
      cell: ({ region }) => <TruncatedText text={region} />,
    },
    {
      key: 'tokens',
      label: logs.tokens,
      isNumber: true,
      cell: ({ prompt_tokens, cached_tokens, completion_tokens }) => (
        <span title={logs.tokensHint} data-parts>
          {[prompt_tokens, cached_tokens, completion_tokens].map(count).join(' / ')}
        </span>
      ),
    },
    {
      key: 'cost',
      sortField: 'quota',
      label: logs.cost,
      isNumber: true,
      phone: 'value',
      cell: ({ quota }) => <MoneyText quota={quota} />,
    },
    {
      key: 'first',
      sortField: 'first_byte_ms',
      label: logs.firstToken,
      isNumber: true,
      phone: 'hidden',
      isOptional: true,
      cell: ({ first_byte_ms }) => (first_byte_ms === null ? '–' : duration(first_byte_ms)),
    },
    {
      key: 'total',
      sortField: 'duration_ms',
      label: logs.total,
      isNumber: true,
      cell: ({ reason, duration_ms }) => (reason === REFUSED ? '–' : duration(duration_ms)),
    },
  ]
}
