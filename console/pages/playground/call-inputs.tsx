import { SegmentedControl, Select, Switch, Textarea, TextInput } from '@mantine/core'
import '@mantine/core/styles/SegmentedControl.css'
import type { ApiKey } from '../../api/keys.ts'
import type { PricedModel } from '../../api/models.ts'
import type { SearchState } from '../../components/search-state.ts'
import { useFormats } from '../../components/session.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import classes from './playground-page.module.css'
import { THINKING } from './request-body.ts'
import type { TypedCall } from './typed-call.ts'

/** Inputs of a call: key, model, protocol, settings, tools. */
export function CallInputs({
  keys,
  keyId,
  models,
  model,
  onChoose,
  typed,
  onType,
  areToolsWrong,
}: {
  readonly keys: readonly ApiKey[]
  readonly keyId: number | undefined
  readonly models: readonly PricedModel[]
  readonly model: string | undefined
  readonly onChoose: (changes: SearchState) => void
  readonly typed: TypedCall
  readonly onType: (changes: Partial<TypedCall>) => void
  readonly areToolsWrong: boolean
}) {
  const { playground } = useTexts()
  return (
    <div className={classes['inputs']}>
      <Select
        label={playground.key}
        allowDeselect={false}
        searchable
        data={keys.map(({ id, name }) => ({ value: String(id), label: name }))}
        value={keyId === undefined ? null : String(keyId)}
        onChange={(key) => onChoose({ key: key ?? undefined })}
      />
      <ModelChoice models={models} model={model} onChoose={(name) => onChoose({ model: name })} />
      <div role="group" aria-label={playground.protocol}>
        <SegmentedControl
          fullWidth
          size="xs"
          className={classes['protocols'] ?? ''}
          aria-label={playground.protocol}
          data={(['chat', 'messages', 'both'] as const).map((value) => ({
            value,
            label: playground.protocols[value],
          }))}
          value={typed.protocol}
          onChange={(protocol) => onType({ protocol })}
        />
      </div>
      <Textarea
        label={playground.system}
        autosize
        minRows={2}
        maxRows={8}
        value={typed.system}
        onChange={({ currentTarget: { value } }) => onType({ system: value })}
      />
      <Select
        label={playground.thinking}
        allowDeselect={false}
        data={THINKING.map((value) => ({ value, label: playground.depths[value] }))}
        value={typed.thinking}
        onChange={(thinking) => onType({ thinking: thinking ?? 'off' })}
      />
      <div className={classes['numbers']}>
        {(
          [
            ['temperature', playground.temperature, 0, 2, 0.1],
            ['topP', playground.topP, 0, 1, 0.05],
            ['maxTokens', playground.maxTokens, 1, undefined, 1],
          ] as const
        ).map(([name, label, min, max, step]) => (
          <TextInput
            key={name}
            type="number"
            label={label}
            min={min}
            max={max}
            step={step}
            placeholder={playground.ofModel}
            value={typed[name]}
            onChange={({ currentTarget: { value } }) => onType({ [name]: value })}
          />
        ))}
      </div>
      <Textarea
        label={playground.tools}
        autosize
        minRows={2}
        maxRows={12}
        spellCheck={false}
        classNames={{ input: classes['code'] ?? '' }}
        error={areToolsWrong ? playground.toolsWrong : undefined}
        value={typed.tools}
        onChange={({ currentTarget: { value } }) => onType({ tools: value })}
      />
      <Switch
        label={playground.stream}
        checked={typed.stream}
        onChange={({ currentTarget: { checked } }) => onType({ stream: checked })}
      />
    </div>
  )
}

function ModelChoice({
  models,
  model,
  onChoose,
}: {
  readonly models: readonly PricedModel[]
  readonly model: string | undefined
  readonly onChoose: (name: string) => void
}) {
  const { playground } = useTexts()
  const { usd } = useFormats()
  const priceOf = (name: string): string => {
    const found = models.find((one) => one.name === name)
    return found ? playground.price(usd(found.input), usd(found.output)) : ''
  }
  return (
    <Select
      label={playground.model}
      description={model === undefined ? playground.noModelOfKey : priceOf(model)}
      allowDeselect={false}
      searchable
      data={models.map(({ name }) => name)}
      value={model ?? null}
      onChange={(name) => name !== null && onChoose(name)}
      renderOption={({ option: { value } }) => (
        <span className={classes['option']}>
          <span>{value}</span>
          <small>{priceOf(value)}</small>
        </span>
      )}
    />
  )
}
