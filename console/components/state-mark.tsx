import classes from './state-mark.module.css'

/** The severity of a state, which the mark beside the word for the state shows. */
export type StateSeverity = 'ok' | 'warn' | 'bad' | 'off'

/** A state as a word, with a mark that differs in shape and in colour. */
export function StateMark({
  tone,
  word,
  title,
}: {
  readonly tone: StateSeverity
  readonly word: string
  readonly title?: string
}) {
  return (
    <span className={classes['state']} data-tone={tone} title={title}>
      {word}
    </span>
  )
}
