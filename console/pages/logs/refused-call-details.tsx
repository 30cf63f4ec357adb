import { Link } from '@tanstack/react-router'
import type { RefusedCall } from '../../api/calls.ts'
import { useSignedInAccount } from '../../components/session.tsx'
import { MoneyText } from '../../components/money-text.tsx'
import { TimeText } from '../../components/time-text.tsx'
import { StateMark } from '../../components/state-mark.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import classes from './call-details.module.css'
import { DetailsFrame } from './details-frame.tsx'
import type { DetailRows } from '../../components/detail-list.tsx'
import { useCallOriginRows } from './use-call-origin-rows.tsx'

/** A call that was refused before it began: the message that its client got, and what has to be changed. */
export function RefusedCallDetails({ call }: { readonly call: RefusedCall }) {
  const texts = useTexts()
  const meanings: Readonly<Record<string, string>> = texts.usage.refusals
  const rows: DetailRows = [
    ...useCallOriginRows(call),
    [texts.call.group, call.group],
    [texts.call.code, call.code],
    ...useLimitRows(call),
  ]
  return (
    <DetailsFrame call={call} state={<StateMark tone="bad" word={texts.call.refused} />} rows={rows}>
      <h3>{texts.call.why}</h3>
      <p className={classes['why']}>
        {texts.usage.refusalSentence(meanings[call.code] ?? call.code)}
        {texts.common.betweenSentences + texts.call.notCharged}
      </p>
      <blockquote className={classes['words']}>{call.message}</blockquote>
      <p className={classes['why']}>
        <WayOn call={call} />
      </p>
    </DetailsFrame>
  )
}

/** The amounts of the limit that refused the call, in money, and when it begins anew, in the time of the reader. */
function useLimitRows({ limit }: RefusedCall): DetailRows {
  const { call } = useTexts()
  if (limit === null || (limit.kind !== 'quota' && limit.kind !== 'budget')) return []
  const amounts = [
    [call.spent, limit.spent],
    [call.left, limit.left],
    [call.needed, limit.needed],
  ] as const
  return [
    ...amounts.flatMap(
      ([label, amount]): DetailRows => (amount === null ? [] : [[label, <MoneyText quota={amount} />]]),
    ),
    ...(limit.resets_at === null ? [] : [[call.resets, <TimeText at={limit.resets_at} isWhole />] as const]),
  ]
}

/** Error codes of refusals that no longer occur once a price is set. */
const WITHOUT_A_PRICE: ReadonlySet<string> = new Set(['model_price_error', 'tool_not_priced'])

/** A link to the page on which the reason of the refusal can be removed. */
function WayOn({
  call: { code, group, limit, model_name: model, token_id, user_id },
}: {
  readonly call: RefusedCall
}) {
  const { call } = useTexts()
  const { profile, isAdmin, isRoot } = useSignedInAccount()
  if (WITHOUT_A_PRICE.has(code))
    return isAdmin ? (
      <Link to="/models" search={isRoot ? { q: model, edit: model } : { q: model }}>
        {call.openModels}
      </Link>
    ) : (
      call.askAdministrator
    )
  if (limit?.subject === 'group')
    return isRoot ? (
      <Link to="/groups" search={{ group: limit.name ?? group }}>
        {call.openGroups}
      </Link>
    ) : (
      call.askAdministrator
    )
  const isOfKey = limit === null ? token_id !== 0 : limit.subject === 'token'
  if (isOfKey && user_id === profile.id)
    return (
      <Link to="/keys/$id" params={{ id: String(token_id) }}>
        {call.openKey}
      </Link>
    )
  if (isAdmin && user_id !== 0)
    return isOfKey ? (
      <Link to="/users/$id/keys/$key" params={{ id: String(user_id), key: String(token_id) }}>
        {call.openKey}
      </Link>
    ) : (
      <Link to="/users/$id" params={{ id: String(user_id) }}>
        {call.openUser}
      </Link>
    )
  return isAdmin ? null : call.askAdministrator
}
