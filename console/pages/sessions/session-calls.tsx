import { Link } from '@tanstack/react-router'
import type { Call } from '../../api/calls.ts'
import { CacheBreakMark } from '../../components/cache-break-mark.tsx'
import { totalInputTokens, cacheTokensOf, truncatedVerdict } from '../../components/cache-breaks.ts'
import { CallState } from '../../components/call-state.tsx'
import { TruncatedText } from '../../components/truncated-text.tsx'
import { type Column, DataTable } from '../../components/data-table.tsx'
import { MoneyText } from '../../components/money-text.tsx'
import type { SearchState } from '../../components/search-state.ts'
import { useFormatters, useSignedInAccount } from '../../components/session.tsx'
import { TimeText } from '../../components/time-text.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import classes from './sessions.module.css'

/**
 * The calls of a session in order. Below a call is how it ended (unless it is complete) and why its prompt
 * cache was not used.
 */
export function SessionCalls({
  calls,
  isStale,
  log,
}: {
  readonly calls: readonly Call[]
  readonly isStale: boolean
  /** The filters of the page Logs that select the calls of the session. */
  readonly log: SearchState
}) {
  const { sessions } = useTexts()
  const { isAdmin } = useSignedInAccount()
  const columns = useColumns(log).filter(({ key }) => isAdmin || key !== 'channel')
  return (
    <DataTable
      label={sessions.inOrder}
      columns={columns}
      rows={calls}
      keyOf={({ id }) => id}
      isStale={isStale}
      areOpened
      detail={detailOf}
    />
  )
}

function detailOf(call: Call) {
  const isPlain = call.reason === 'complete' && call.note === ''
  return isPlain && call.cache_break === '' && call.cache_verdict === '' ? null : <Detail call={call} />
}

function Detail({ call }: { readonly call: Call }) {
  const { caches } = useTexts()
  const { reason, note, cache_break: broke, cache_verdict: verdict } = call
  return (
    <div className={classes['detail']}>
      {(reason !== 'complete' || note !== '') && <CallState reason={reason} note={note} />}
      {broke !== '' && <CacheBreakMark reason={broke} />}
      {verdict !== '' && (
        <span>
          {caches.verdict} <code>{truncatedVerdict(verdict)}</code>
        </span>
      )}
    </div>
  )
}

function useColumns(log: SearchState): readonly Column<Call>[] {
  const { sessions } = useTexts()
  const { count } = useFormatters()
  const tokens = (key: string, label: string, of: (call: Call) => number): Column<Call> => ({
    key,
    label,
    isNumber: true,
    cell: (call) => count(of(call)),
  })
  return [
    {
      key: 'time',
      label: sessions.time,
      phone: 'title',
      cell: ({ id, created_at }) => (
        <Link to="/logs/$id" params={{ id }} search={log} data-row-link={id}>
          <TimeText at={created_at} />
        </Link>
      ),
    },
    {
      key: 'model',
      label: sessions.model,
      cell: ({ model_name }) => <TruncatedText text={model_name} isName />,
    },
    {
      key: 'channel',
      label: sessions.channel,
      isOptional: true,
      cell: ({ channel }) => <TruncatedText text={channel ?? ''} />,
    },
    tokens('input', sessions.input, (call) => totalInputTokens(cacheTokensOf(call))),
    tokens('cached', sessions.cached, (call) => cacheTokensOf(call).cached),
    tokens('written', sessions.written, (call) => cacheTokensOf(call).cache_write),
    tokens('output', sessions.output, ({ completion_tokens }) => completion_tokens),
    {
      key: 'cost',
      label: sessions.cost,
      isNumber: true,
      phone: 'value',
      cell: ({ quota }) => <MoneyText quota={quota} />,
    },
    {
      key: 'saved',
      label: sessions.saved,
      isNumber: true,
      cell: ({ cache_saved }) => <MoneyText quota={cache_saved} />,
    },
    {
      key: 'surcharge',
      label: sessions.surcharge,
      isNumber: true,
      isOptional: true,
      cell: ({ cache_surcharge }) => <MoneyText quota={cache_surcharge} />,
    },
  ]
}
