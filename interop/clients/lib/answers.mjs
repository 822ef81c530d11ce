// What a TypeScript client answers when the server asks. Always the same, so that two runs can be compared.

/** Accepts a form with something fitting in each field, unless the question itself suggests to decline. */
function answerElicitation({ message, requestedSchema }) {
  if (/decline/.test(message)) return { action: 'decline' };
  const { properties, required } = requestedSchema;
  const wanted = required?.length ? required : Object.keys(properties);
  const choice = (schema) => {
    if (schema.type === 'array') return [choice(schema.items)];
    const fixed = schema.const ?? schema.enum?.[0] ?? (schema.oneOf ?? schema.anyOf)?.[0]?.const;
    return fixed ?? { boolean: true, integer: 7, number: 7 }[schema.type] ?? 'Ada';
  };
  return { action: 'accept', content: Object.fromEntries(wanted.map((name) => [name, choice(properties[name])])) };
}

const answerSampling = ({ messages }) => ({
  role: 'assistant',
  model: 'interop-model',
  stopReason: 'endTurn',
  content: { type: 'text', text: `an answer to: ${messages.at(-1).content.text}` },
});

const answerRoots = () => ({
  roots: [{ uri: 'file:///interop/project', name: 'project' }, { uri: 'file:///interop/b%20c', name: 'with space' }],
});

export const ANSWERS = {
  'sampling/createMessage': answerSampling,
  'elicitation/create': answerElicitation,
  'roots/list': answerRoots,
};
