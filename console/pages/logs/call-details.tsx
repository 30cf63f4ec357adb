import { Link } from '@tanstack/react-router'
import type { CallDetail } from '../../api/calls.ts'
import { CallState } from '../../components/call-state.tsx'
import { useFormatters } from '../../components/session.tsx'
import { useTierNames } from '../../components/use-tier-names.ts'
import { useTexts } from '../../locales/use-texts.tsx'
import { AttemptList } from './attempt-list.tsx'
import classes from './call-details.module.css'
import { CacheDetails } from './cache-details.tsx'
import { CallContentSection } from './call-content.tsx'
import { CostLines } from './cost-lines.tsx'
import { DetailsFrame } from './details-frame.tsx'
import type { DetailRows } from '../../components/detail-list.tsx'
import { TimingBar } from './timing-bar.tsx'
import { useCallOriginRows } from './use-call-origin-rows.tsx'
import { FailureExplanation } from './failure-explanation.tsx'
import { GuardDetails } from './guard-details.tsx'

/** Cost, timing and origin of a call. */
export function CallDetails({ call }: { readonly call: CallDetail }) {
  const texts = useTexts()
  const { money, exact } = useFormatters()
  const tiers = useTierNames()
  const endpoints: Readonly<Record<string, string>> = texts.models.endpointWords
  const rows: DetailRows = [
    ...useCallOriginRows(call),
    [texts.call.group, call.group],
    ...(call.upstream_model ? [[texts.call.upstreamModel, call.upstream_model] as const] : []),
    [texts.call.endpoint, endpoints[call.kind] ?? call.kind],
    [
      texts.batches.batch,
      call.batch === '' ? (
        ''
      ) : (
        <Link to="/batches/$id" params={{ id: call.batch }}>
          {call.batch}
        </Link>
      ),
    ],
    [texts.batches.customId, call.custom_id],
    [texts.call.answer, call.is_stream ? texts.call.streamed : texts.call.whole],
    [texts.call.tierRow, tiers.textOf(call)],
    [texts.call.regionRow, call.region],
    [texts.call.dropped, call.dropped.join(', ')],
    [texts.call.idempotencyKey, call.idempotent ? texts.call.isIdempotent : ''],
    [texts.call.incompletePrice, call.price_incomplete ? texts.call.isIncomplete : ''],
    [texts.call.note, call.note === '' ? '' : texts.call.notes[call.note]],
  ]
  return (
    <DetailsFrame
      call={call}
      state={<CallState reason={call.reason} note={call.note} />}
      charge={
        <p className={classes['charge']} title={exact(call.quota)}>
          {money(call.quota)}
        </p>
      }
      rows={rows}
    >
      <FailureExplanation call={call} />
      <CallContentSection call={call} />
      <h3>{texts.call.cost}</h3>
      <CostLines call={call} />
      <GuardDetails call={call} />
      <CacheDetails call={call} />
      <h3>{texts.call.timing}</h3>
      <TimingBar call={call} />
      {call.attempts !== undefined && (
        <>
          <h3>{texts.call.attempts}</h3>
          <AttemptList call={call} />
        </>
      )}
    </DetailsFrame>
  )
}
