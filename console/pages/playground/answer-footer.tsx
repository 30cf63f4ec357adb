import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useFormatters, useSignedInAccount } from '../../components/session.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import type { Answer } from './answer.ts'
import { settledCallOfAnswer, tokensPerSecond } from './settled-call-of-answer.ts'
import classes from './exchange-view.module.css'

/** The cost of a response, its tokens and times, and its events. */
export function AnswerFooter({ answer }: { readonly answer: Answer }) {
  const { playground } = useTexts()
  const { duration } = useFormatters()
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

function Cost({ answer, id }: { readonly answer: Answer; readonly id: string }) {
  const { playground } = useTexts()
  const { profile } = useSignedInAccount()
  const { money, exact, count } = useFormatters()
  const { data: call } = useQuery(settledCallOfAnswer(profile.id, answer))
  if (!call) return null
  const speed = tokensPerSecond(answer, call.completion_tokens)
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
      {call.prompt_tokens + call.completion_tokens > 0 && (
        <span>{playground.inOut(count(call.prompt_tokens), count(call.completion_tokens))}</span>
      )}
      {speed !== undefined && <span>{playground.perSecond(count(speed))}</span>}
    </>
  )
}
