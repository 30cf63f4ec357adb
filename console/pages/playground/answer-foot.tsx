import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { callQuery } from '../../api/calls.ts'
import { useFormats, useSignedIn } from '../../components/session.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import type { Answer } from './answer.ts'
import classes from './exchange-view.module.css'

const ASK_AGAIN_MS = 500
/** The maximum number of requests for a call's row, because a refused call has none. */
const MAX_ASKED = 6

/** The cost of a response, its tokens and times, and its events. */
export function AnswerFoot({ answer }: { readonly answer: Answer }) {
  const { playground } = useTexts()
  const { duration } = useFormats()
  const { callId, refused, firstMs, totalMs, raw } = answer
  return (
    <div className={classes['foot']}>
      {callId !== undefined && refused === undefined && <Cost answer={answer} id={callId} />}
      {firstMs !== undefined && <span>{playground.firstAfter(duration(firstMs))}</span>}
      {totalMs !== undefined && <span>{playground.totalOf(duration(totalMs))}</span>}
      {raw.length > 0 && (
        <details>
          <summary>{playground.raw(raw.length)}</summary>
          <pre tabIndex={0}>{raw.join('\n')}</pre>
        </details>
      )}
    </div>
  )
}

function Cost({ answer: { firstMs, totalMs }, id }: { readonly answer: Answer; readonly id: string }) {
  const { playground } = useTexts()
  const { profile } = useSignedIn()
  const { money, exact, count } = useFormats()
  const { data: call } = useQuery({
    ...callQuery(profile.id, 'own', id),
    refetchInterval: ({ state }) => (state.data || state.dataUpdateCount >= MAX_ASKED ? false : ASK_AGAIN_MS),
  })
  if (!call) return null
  const streamedMs = (totalMs ?? 0) - (firstMs ?? 0)
  const cost = money(call.quota)
  return (
    <>
      <Link
        to="/logs/$id"
        params={{ id }}
        title={exact(call.quota)}
        aria-label={playground.callDetails(cost)}
      >
        {cost}
      </Link>
      <span>{playground.inOut(count(call.prompt_tokens), count(call.completion_tokens))}</span>
      {streamedMs > 0 && call.completion_tokens > 0 && (
        <span>{playground.perSecond(count(Math.round((call.completion_tokens / streamedMs) * 1000)))}</span>
      )}
    </>
  )
}
