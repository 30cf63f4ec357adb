import { Select, TextInput } from '@mantine/core'
import type { UseFormReturnType } from '@mantine/form'
import { useTexts } from '../locales/use-texts.tsx'
import classes from './limit-inputs.module.css'
import { useFormatters } from './session.tsx'
import {
  isPercentOrEmpty,
  CONTENT_LEVEL_CHOICES,
  type ContentLogFormValues,
} from './content-log-form-values.ts'

/** The fields that set what the content log records of the calls of a key or a user. */
export function ContentInputs<Typed extends ContentLogFormValues>({
  form: given,
  hint,
  isDisabled = false,
}: {
  readonly form: UseFormReturnType<Typed>
  readonly hint: string
  readonly isDisabled?: boolean
}) {
  const { content } = useTexts()
  const words = useContentWords()
  // The form has more fields; only those of the content log are used here.
  const form = given as unknown as UseFormReturnType<ContentLogFormValues>
  const { content_log_keep: keep } = form.values
  const times = new Map<string, string>(Object.entries(content.times))
  if (keep !== '' && !times.has(keep)) times.set(keep, words.content_log_keep(keep))
  return (
    <>
      <Select
        label={content.kept}
        description={hint}
        allowDeselect={false}
        disabled={isDisabled}
        data={CONTENT_LEVEL_CHOICES.map((value) => ({ value, label: content.levels[value] }))}
        {...form.getInputProps('content_log_what')}
      />
      <div className={classes['pair']}>
        <TextInput
          label={content.share}
          description={content.shareHint}
          inputMode="decimal"
          placeholder={content.asBefore}
          rightSection="%"
          disabled={isDisabled}
          {...form.getInputProps('content_log_sample')}
        />
        <Select
          label={content.keptFor}
          description={content.keptForHint}
          allowDeselect={false}
          disabled={isDisabled}
          data={[
            { value: '', label: words.content_log_keep('') },
            ...[...times]
              .toSorted(([a], [b]) => Number(a) - Number(b))
              .map(([value, label]) => ({ value, label })),
          ]}
          {...form.getInputProps('content_log_keep')}
        />
      </div>
    </>
  )
}

/** The validation rules of the content log's fields, for the form that contains them. */
export function useContentRules() {
  const { content } = useTexts()
  return {
    content_log_sample: (typed: string): string | null =>
      isPercentOrEmpty(typed) ? null : content.notAShare,
  }
}

/** The words for the values of the content log's fields that are chosen. */
export function useContentWords() {
  const { content, limits } = useTexts()
  const { count } = useFormatters()
  const times: Readonly<Record<string, string>> = content.times
  return {
    content_log_what: content.levels,
    content_log_keep: (keep: string): string =>
      keep === '' ? content.asBefore : (times[keep] ?? limits.seconds(count(Number(keep)))),
  }
}

/**
 * The labels of the content log's fields, for the dialog that asks which of two conflicting changes to keep.
 */
export function useContentLabels() {
  const { content } = useTexts()
  return {
    content_log_what: content.kept,
    content_log_sample: content.share,
    content_log_keep: content.keptFor,
  }
}
