import { Checkbox, Textarea, TextInput } from '@mantine/core'
import { useState } from 'react'
import { PROTOCOL_NAMES } from '@sluice/wire/protocols'
import { FormSection } from '../../components/form-section.tsx'
import { NameValueRows } from '../../components/name-value-rows.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import {
  ADVANCED_FIELD_NAMES,
  countChangedAdvanced,
  overridesNotShownInForm,
  type NameValuePair,
} from './advanced-form-values.ts'
import { type ChannelForm, chosenProtocols } from './channel-form.ts'
import classes from './channels-page.module.css'

/**
 * Settings that few channels need. The section is closed at first, and open if one of its fields has an
 * error.
 */
export function AdvancedInputs({ form }: { readonly form: ChannelForm }) {
  const { advanced, channels } = useTexts()
  const [isOpen, setIsOpen] = useState(false)
  const hasError = Object.keys(form.errors).some((name) => ADVANCED_FIELD_NAMES.has(name))
  const given = countChangedAdvanced(form.values)
  return (
    <FormSection
      title={advanced.title}
      text={given > 0 ? advanced.given(given) : advanced.text}
      isOpen={isOpen || hasError}
      onToggle={() => setIsOpen(!isOpen)}
    >
      <NameValueRows
        label={advanced.mapping}
        description={advanced.mappingHint}
        nameLabel={advanced.asked}
        valueLabel={advanced.sent}
        {...rowsOf(form, 'mapping')}
      />
      <NameValueRows
        label={advanced.headers}
        description={advanced.headersHint}
        nameLabel={advanced.header}
        valueLabel={advanced.value}
        {...rowsOf(form, 'headers')}
      />
      {overridesNotShownInForm(form.values.settings) === undefined ? (
        <NameValueRows
          label={advanced.overrides}
          description={advanced.overridesHint}
          nameLabel={advanced.member}
          valueLabel={advanced.value}
          {...rowsOf(form, 'overrides')}
        />
      ) : (
        <p className={classes['outcome']}>{advanced.keptOverrides}</p>
      )}
      <TextInput
        label={advanced.proxy}
        placeholder={advanced.proxyExample}
        spellCheck={false}
        {...form.getInputProps('proxy')}
      />
      <TextInput
        label={advanced.probe}
        description={advanced.probeHint}
        placeholder={advanced.probeExample}
        spellCheck={false}
        {...form.getInputProps('probe')}
      />
      <TextInput
        label={advanced.testModel}
        description={advanced.testModelHint}
        spellCheck={false}
        {...form.getInputProps('testModel')}
      />
      <TextInput
        label={advanced.serviceTier}
        description={advanced.serviceTierHint}
        placeholder={advanced.serviceTierExample}
        spellCheck={false}
        {...form.getInputProps('serviceTier')}
      />
      <Textarea
        label={advanced.systemPrompt}
        description={advanced.systemPromptHint}
        autosize
        minRows={2}
        maxRows={8}
        {...form.getInputProps('systemPrompt')}
      />
      <Checkbox
        label={advanced.repair}
        description={advanced.repairHint}
        {...form.getInputProps('repair', { type: 'checkbox' })}
      />
      <Checkbox.Group
        label={advanced.protocols}
        description={advanced.protocolsHint}
        value={chosenProtocols(form.values)}
        onChange={(chosen) => chooseProtocols(form, chosen)}
        error={form.errors['protocols']}
      >
        <div className={classes['protocols']}>
          {PROTOCOL_NAMES.map((name) => (
            <Checkbox key={name} value={name} label={channels.protocols[name]} />
          ))}
        </div>
      </Checkbox.Group>
    </FormSection>
  )
}

// The field Protocol shows the first of the chosen protocols; `protocols` contains the others.
function chooseProtocols(form: ChannelForm, chosen: readonly string[]): void {
  const { protocol } = form.values
  const first = chosen.includes(protocol) ? protocol : (chosen[0] ?? '')
  form.setValues({ protocol: first, protocols: chosen.filter((name) => name !== first) })
}

function rowsOf(form: ChannelForm, name: 'mapping' | 'headers' | 'overrides') {
  return {
    value: form.values[name],
    error: form.errors[name],
    onChange: (rows: NameValuePair[]) => form.setFieldValue(name, rows),
  }
}
