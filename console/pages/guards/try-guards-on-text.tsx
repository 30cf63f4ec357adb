import { Button, Select, Textarea } from '@mantine/core'
import { useState } from 'react'
import { GUARD_PLACES, type GuardPlace } from '../../../src/domain/guard.ts'
import { type GuardFields, type GuardTestResult, testGuards } from '../../api/guards.ts'
import { FormSection } from '../../components/form-section.tsx'
import { VerdictMark } from '../../components/guard-verdicts.tsx'
import { RefusalMessage } from '../../components/refusal-message.tsx'
import { useAction } from '../../components/use-action.ts'
import { useTexts } from '../../locales/use-texts.tsx'
import classes from './guards.module.css'

/**
 * A form to try guards with a text: all guards, or those that `given` returns. Nothing is sent to a model.
 */
export function TryGuardsOnText({
  given,
}: {
  /**
   * Returns the guard to try as it is typed, or the names of stored guards, or an empty object for all
   * guards. Returns undefined if the typed guard is invalid.
   */
  readonly given: () => { readonly guard: GuardFields } | { readonly guards: string[] } | object | undefined
}) {
  const { guards: t } = useTexts()
  const [text, setText] = useState('')
  const [place, setPlace] = useState<GuardPlace>('input')
  const [result, setResult] = useState<GuardTestResult>()
  const trying = useAction(async () => {
    setResult(undefined)
    const tried = given()
    if (tried) setResult(await testGuards({ text, place, ...tried }))
  })
  return (
    <form
      noValidate
      onSubmit={(event) => {
        event.preventDefault()
        void trying.run()
      }}
    >
      <FormSection title={t.tryText} text={t.tryHint}>
        <Textarea
          label={t.text}
          autosize
          minRows={3}
          maxRows={12}
          value={text}
          onChange={({ currentTarget }) => setText(currentTarget.value)}
        />
        <Select
          label={t.place}
          allowDeselect={false}
          data={GUARD_PLACES.map((value) => ({ value, label: t.places[value] }))}
          value={place}
          onChange={(chosen) => setPlace(chosen as GuardPlace)}
        />
        <Button
          type="submit"
          variant="default"
          style={{ alignSelf: 'start' }}
          loading={trying.isRunning}
          disabled={text === ''}
        >
          {t.test}
        </Button>
        <RefusalMessage error={trying.error} />
        {result && <Outcome result={result} />}
      </FormSection>
    </form>
  )
}

function Outcome({
  result: { text, blocked_by: blockedBy, verdicts },
}: {
  readonly result: GuardTestResult
}) {
  const { guards: t } = useTexts()
  return (
    <section aria-label={t.outcome} aria-live="polite" className={classes['outcome']}>
      {verdicts.length === 0 ? (
        <p>{t.noneHere}</p>
      ) : (
        <ul aria-label={t.verdictsTitle}>
          {verdicts.map(({ name, verdict, count }) => (
            <li key={name}>
              <span>{name}</span> <VerdictMark verdict={verdict} count={count} />
            </li>
          ))}
        </ul>
      )}
      {blockedBy !== null ? (
        <p>{t.blockedBy(blockedBy)}</p>
      ) : (
        <>
          <p>{t.after}</p>
          <pre tabIndex={0} aria-label={t.after}>
            {text}
          </pre>
        </>
      )}
    </section>
  )
}
