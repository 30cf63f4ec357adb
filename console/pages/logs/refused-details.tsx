import { Link } from '@tanstack/react-router'
import type { RefusedCall } from '../../api/calls.ts'
import { CopyButton } from '../../components/copy-button.tsx'
import { useSignedIn } from '../../components/session.tsx'
import { StateMark } from '../../components/state-mark.tsx'
import { TimeText } from '../../components/time-text.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import classes from './call-details.module.css'

/** A call that was refused before it began: the sentence that its client got, and what has to change. */
export function RefusedDetails({ call }: { readonly call: RefusedCall }) {
  const texts = useTexts()
  const rows: readonly (readonly [string, string])[] = [
    [texts.logs.key, call.token_name],
    [texts.logs.user, call.username],
    [texts.call.group, call.group],
    [texts.call.code, call.code],
    [texts.call.callId, call.id],
  ]
  return (
    <>
      <p className={classes['head']}>
        <strong>{call.model_name}</strong>
        <StateMark tone="bad" word={texts.call.refused} />
      </p>
      <p className={classes['when']}>
        <TimeText at={call.created_at} isWhole />
      </p>
      <h3>{texts.call.why}</h3>
      <p className={classes['why']}>
        {call.message} {texts.call.notCharged}
      </p>
      <p className={classes['why']}>
        <WayOn call={call} />
      </p>
      <h3>{texts.call.ids}</h3>
      <dl className={classes['rows']}>
        {rows
          .filter(([, value]) => value !== '')
          .map(([label, value]) => (
            <div key={label}>
              <dt>{label}</dt>
              <dd>{value}</dd>
            </div>
          ))}
      </dl>
      <p className={classes['actions']}>
        <CopyButton label={texts.call.copyId} text={call.id} />
      </p>
    </>
  )
}

/** A link to what has to change. */
function WayOn({ call: { code, limit, token_id, user_id } }: { readonly call: RefusedCall }) {
  const { call } = useTexts()
  const { profile, isAdmin } = useSignedIn()
  if (code === 'model_price_error' && isAdmin) return <Link to="/models">{call.openModels}</Link>
  const isOfKey = limit === null ? token_id !== 0 : limit.subject === 'token'
  if (isOfKey && user_id === profile.id)
    return (
      <Link to="/keys/$id" params={{ id: String(token_id) }}>
        {call.openKey}
      </Link>
    )
  if (isAdmin && user_id !== 0)
    return (
      <Link to="/users/$id" params={{ id: String(user_id) }}>
        {call.openUser}
      </Link>
    )
  return isAdmin ? null : call.askAdministrator
}
