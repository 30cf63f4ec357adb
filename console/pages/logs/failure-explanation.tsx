import type { CallDetail } from '../../api/calls.ts'
import { useTexts } from '../../locales/use-texts.tsx'
import classes from './call-details.module.css'

/** Why a call failed: an explanation of the cause, and the message that its client got. */
export function FailureExplanation({ call: { error, quota } }: { readonly call: CallDetail }) {
  const { call: texts, common } = useTexts()
  if (!error) return null
  const sentences: Readonly<Record<string, string>> = texts.causes
  return (
    <>
      <h3>{texts.why}</h3>
      <p className={classes['why']}>
        {sentences[error.cause] ?? error.cause}
        {quota === 0 && common.betweenSentences + texts.notCharged}
      </p>
      {error.message !== '' && <blockquote className={classes['words']}>{error.message}</blockquote>}
    </>
  )
}
