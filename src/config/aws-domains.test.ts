import { expect, test } from 'vitest'
import { parseYamlDocument } from './document.ts'
import { readFileContent } from './read-sections.ts'

const KEY = 'AKIDEXAMPLE0000:wJalrXUtnFEMIK7MDENG'

/** What gateway.yaml says of a guard, a bucket and, if channels know the region, a channel. */
function read(region: string, hasChannel: boolean) {
  const text = `
    content_log: { store: "s3://said", region: ${region} }
    channels: [${hasChannel ? `{ name: c, provider: bedrock, protocol: converse, region: ${region}, keys: ["${KEY}"], models: [m] }` : ''}]
    guards: [{ name: g, do: block, match: { bedrock: { region: ${region}, guardrail: g, version: 1, keys: ["${KEY}"] } } }]`
  const { content, diagnostics } = readFileContent(parseYamlDocument(text, () => undefined))
  expect(diagnostics).toEqual([])
  return content
}

test.each([
  ['eu-central-1', 'amazonaws.com', true],
  ['us-gov-west-1', 'amazonaws.com', true],
  ['cn-northwest-1', 'amazonaws.com.cn', true],
  ['eusc-de-east-1', 'amazonaws.eu', true],
  ['us-iso-east-1', 'c2s.ic.gov', true],
  ['us-isob-east-1', 'sc2s.sgov.gov', true],
  ['eu-isoe-west-1', 'cloud.adc-e.uk', false],
  ['us-isof-south-1', 'csp.hci.ic.gov', false],
])(
  'channels, guards and buckets have the address of Amazon in their region: %s',
  (region, domain, isKnown) => {
    const content = read(region, isKnown)
    const bedrock = `https://bedrock-runtime.${region}.${domain}`
    if (isKnown) expect(content?.channels[0]?.base_url).toBe(bedrock)
    expect(content?.guards[0]?.match).toMatchObject({ base_url: bedrock })
    expect(content?.contentLog.store).toMatchObject({ endpoint: `https://s3.${region}.${domain}` })
  },
)
