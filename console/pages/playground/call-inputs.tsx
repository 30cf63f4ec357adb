import { Radio, Select, Stack, Switch, Textarea, TextInput } from '@mantine/core'
import type { ApiKey } from '../../api/keys.ts'
import { CLIENT_PROTOCOLS } from '@sluice/wire/protocols'
import { useTexts } from '../../locales/use-texts.tsx'
import classes from './playground-page.module.css'
import { THINKING_LEVELS } from './playground-request.ts'
import { MEDIA_ENDPOINTS, type Protocol } from './answer.ts'
import { DEFAULT_VOICE } from './media-body.ts'
import type { CallFormValues } from './call-form-values.ts'

/** The settings of calls: key, protocol, system prompt, tools and so on. */
export function CallInputs({
  keys,
  keyId,
  onKey,
  typed,
  onType,
  areToolsWrong,
  media,
}: {
  readonly keys: readonly ApiKey[]
  readonly keyId: number | undefined
  readonly onKey: (key: string | undefined) => void
  readonly typed: CallFormValues
  readonly onType: (changes: Partial<CallFormValues>) => void
  readonly areToolsWrong: boolean
  /** The protocols and endpoints of the chosen models, which decide what inputs are shown. */
  readonly media: ReadonlySet<Protocol>
}) {
  const { playground } = useTexts()
  const isConversing =
    media.size === 0 || [...media].some((one) => !MEDIA_ENDPOINTS.some((medium) => medium === one))
  return (
    <section className={classes['inputs']} aria-label={playground.settings}>
      <Select
        label={playground.key}
        allowDeselect={false}
        searchable
        data={keys.map(({ id, name }) => ({ value: String(id), label: name }))}
        value={keyId === undefined ? null : String(keyId)}
        onChange={(key) => onKey(key ?? undefined)}
      />
      {media.has('images') && (
        <TextInput
          label={playground.size}
          placeholder={playground.ofModel}
          value={typed.size}
          onChange={({ currentTarget: { value } }) => onType({ size: value })}
        />
      )}
      {media.has('speech') && (
        <TextInput
          label={playground.voice}
          placeholder={DEFAULT_VOICE}
          value={typed.voice}
          onChange={({ currentTarget: { value } }) => onType({ voice: value })}
        />
      )}
      {isConversing && <ConversationInputs typed={typed} onType={onType} areToolsWrong={areToolsWrong} />}
    </section>
  )
}

/** Settings that apply to conversations alone. */
function ConversationInputs({
  typed,
  onType,
  areToolsWrong,
}: Pick<Parameters<typeof CallInputs>[0], 'typed' | 'onType' | 'areToolsWrong'>) {
  const { playground } = useTexts()
  return (
    <>
      <Radio.Group
        label={playground.protocol}
        value={typed.protocol}
        onChange={(protocol) => onType({ protocol })}
      >
        <Stack gap={8}>
          {([...CLIENT_PROTOCOLS, 'both'] as const).map((value) => (
            <Radio key={value} value={value} label={playground.protocols[value]} />
          ))}
        </Stack>
      </Radio.Group>
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
        data={THINKING_LEVELS.map((value) => ({ value, label: playground.depths[value] }))}
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
    </>
  )
}
