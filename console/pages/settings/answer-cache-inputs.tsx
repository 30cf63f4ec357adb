import { Select, Switch, TextInput } from '@mantine/core'
import { CACHE_SCOPES } from '../../../src/domain/options.ts'
import { useTexts } from '../../locales/use-texts.tsx'
import { parseAnswerCacheOption, answerCacheText, type AnswerCacheField } from './answer-cache-option.ts'

/** The settings of the answer cache that are typed as text, each with an example of a value. */
const TYPED: readonly (readonly [field: AnswerCacheField, example: string])[] = [
  ['ttl', '10m'],
  ['max_ttl', '1h'],
  ['most', '1GB'],
  ['price', '0.1'],
]

/**
 * The inputs for the option `cache`, which caches answers; they cannot be changed if gateway.yaml sets the
 * option.
 */
export function AnswerCacheInputs({
  value,
  source,
  error,
  onChange,
}: {
  /** The option as JSON text; empty if no answers are cached. */
  readonly value: string
  /** The place in gateway.yaml that sets the option; undefined if there is none. */
  readonly source: string | undefined
  readonly error: string | undefined
  readonly onChange: (value: string) => void
}) {
  const { settings } = useTexts()
  const texts = settings.answerCache
  const disabled = source !== undefined
  const fields = parseAnswerCacheOption(value)
  const set = (field: AnswerCacheField, text: string): void =>
    onChange(answerCacheText({ ...fields, [field]: text }))
  return (
    <>
      <Switch
        label={texts.isOn}
        description={disabled ? `${texts.isOnHint} (${source})` : texts.isOnHint}
        disabled={disabled}
        checked={value !== ''}
        error={error}
        onChange={({ currentTarget: { checked } }) =>
          onChange(checked ? answerCacheText({ ttl: '10m' }) : '')
        }
      />
      {value !== '' && (
        <>
          {TYPED.map(([field, example]) => (
            <TextInput
              key={field}
              label={texts.fields[field][0]}
              description={texts.fields[field][1]}
              placeholder={example}
              disabled={disabled}
              value={fields[field] ?? ''}
              onChange={({ currentTarget }) => set(field, currentTarget.value)}
            />
          ))}
          <Select
            label={texts.fields.scope[0]}
            description={texts.fields.scope[1]}
            allowDeselect={false}
            disabled={disabled}
            data={CACHE_SCOPES.map((scope) => ({ value: scope, label: texts.scopes[scope] }))}
            value={fields.scope ?? CACHE_SCOPES[0]}
            onChange={(chosen) => set('scope', chosen ?? CACHE_SCOPES[0])}
          />
        </>
      )}
    </>
  )
}
